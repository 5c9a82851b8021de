//! What every cluster of a run has: classes of Pods, and namespaces.

use serde_json::json;

use super::NAMESPACES;
use super::api::Api;
use crate::error::Result;

/// Classes with the priorities 0 to this, exclusive.
pub(super) const PRIORITIES: usize = 4;
/// Of a Pod that is important, but takes nothing away from others.
pub(super) const NEVER_PREEMPTS: &str = "never-preempts";
/// They add to what a Pod needs; the second also says where it may run.
pub(super) const RUNTIME_CLASSES: [&str; 3] = ["heavy", "heavy", "heavy-on-ssd"];

pub(super) fn priority_class(priority: usize) -> String {
    format!("priority-{priority}")
}

pub(super) async fn create(api: &Api) -> Result<()> {
    let classes = "apis/scheduling.k8s.io/v1/priorityclasses";
    for priority in 0..PRIORITIES {
        let metadata = json!({"name": priority_class(priority)});
        api.ensure(classes, &json!({"metadata": metadata, "value": priority})).await?;
    }
    let metadata = json!({"name": NEVER_PREEMPTS});
    let important = PRIORITIES - 1;
    let class = json!({"metadata": metadata, "value": important, "preemptionPolicy": "Never"});
    api.ensure(classes, &class).await?;

    let overhead = json!({"podFixed": {"cpu": "250m", "memory": "120Mi"}});
    let tolerations = json!([{"key": "t", "operator": "Exists"}]);
    let on_ssd = json!({"nodeSelector": {"disk": "ssd"}, "tolerations": tolerations});
    for (name, scheduling) in [("heavy", json!(null)), ("heavy-on-ssd", on_ssd)] {
        let class = json!({
            "metadata": {"name": name}, "handler": "heavy", "overhead": overhead,
            "scheduling": scheduling,
        });
        api.ensure("apis/node.k8s.io/v1/runtimeclasses", &class).await?;
    }
    for name in NAMESPACES {
        api.ensure("api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
    }
    Ok(())
}
