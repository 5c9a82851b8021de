//! The limit: a client that has nothing to decide.
//!
//! It has the scheduler's account and so its rights, policies and place in the API server's queues; it holds
//! one watch on Pods, which it throws away, keeps as many Bindings in flight, and annotates them alike.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use e2e::{Error, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::wire::Wire;

/// As many as the scheduler keeps (`driver/slots.rs`).
const IN_FLIGHT: usize = 64;
/// The scheduler waits as long after it has won, before it binds. By then the fence knows its Lease.
const SETTLE: Duration = Duration::from_secs(1);
const WATCH_SECONDS: u32 = 3600;

/// What the Pods that it binds have as `schedulerName`.
pub const SCHEDULER_NAME: &str = "bind-only";

/// Binds every waiting Pod of [`SCHEDULER_NAME`] to the Nodes in turn, then waits to be killed, so that what
/// it cost can be read.
pub async fn run(kubeconfig: &Path, leader: &str) -> Result<()> {
    let wire = Arc::new(Wire::new(kubeconfig).await?);
    let nodes = list(&wire, "/api/v1/nodes").await?;
    let waiting =
        format!("/api/v1/pods?fieldSelector=spec.schedulerName={SCHEDULER_NAME},spec.nodeName=");
    let pods = list(&wire, &waiting).await?;
    let watch = format!(
        "/api/v1/pods?watch=true&resourceVersion={}&timeoutSeconds={WATCH_SECONDS}",
        pods.metadata.resource_version
    );
    let watcher = Arc::clone(&wire);
    let watch =
        tokio::spawn(async move { watcher.read_and_drop(&watch, "application/json").await });
    sleep(SETTLE).await;
    let (wire, targets) = (&wire, nodes.items.iter().cycle());
    let bindings: Vec<_> = pods.items.iter().zip(targets).collect();
    stream::iter(bindings)
        .map(|(pod, node)| bind(wire, &pod.metadata, &node.metadata.name, leader))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    // It ends with an error or not at all.
    let ended = watch.await.map_err(|problem| Error::malformed("watching Pods", problem))?;
    ended.map(drop)
}

async fn bind(wire: &Wire, pod: &Metadata, node: &str, leader: &str) -> Result<()> {
    let Metadata { namespace, name, uid, .. } = pod;
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "namespace": namespace, "name": name, "uid": uid,
            "annotations": {"corridoros.io/leader": leader},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    wire.post(&format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"), &body).await
}

async fn list(wire: &Wire, path: &str) -> Result<List> {
    let bytes = wire.get(path).await?;
    serde_json::from_slice(&bytes).map_err(|problem| Error::malformed(path, problem))
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}
