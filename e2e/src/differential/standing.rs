//! What every cluster of a run has: classes of Pods, and namespaces.

use random_clusters::{NAMESPACES, priority_classes, runtime_classes};
use serde_json::json;

use super::api::Api;
use crate::error::Result;

pub(super) async fn create(api: &Api) -> Result<()> {
    for class in priority_classes() {
        api.ensure("apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    }
    for class in runtime_classes() {
        api.ensure("apis/node.k8s.io/v1/runtimeclasses", &class).await?;
    }
    // They outlive each cluster: to end a namespace takes a controller.
    for name in NAMESPACES {
        api.ensure("api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
    }
    Ok(())
}
