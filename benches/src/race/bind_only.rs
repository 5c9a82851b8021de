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

use super::drain::MEASURED;
use super::wire::Wire;

/// As many as the scheduler keeps (`driver/slots.rs`).
const IN_FLIGHT: usize = 64;
/// The scheduler waits as long after it has won, before it binds. By then the fence knows its Lease.
const SETTLE: Duration = Duration::from_secs(1);
const WATCH_SECONDS: u32 = 3600;

/// What the Pods that it binds have as `schedulerName`.
pub const SCHEDULER_NAME: &str = "bind-only";

/// Binds every measured Pod of [`SCHEDULER_NAME`] to the Nodes in turn, then waits to be killed, so that what
/// it cost can be read.
pub async fn run(kubeconfig: &Path, leader: &str) -> Result<()> {
    let wire = Arc::new(Wire::new(kubeconfig).await?);
    let nodes = list(&wire, "/api/v1/nodes").await?;
    let waiting =
        format!("/api/v1/pods?fieldSelector=spec.schedulerName={SCHEDULER_NAME},spec.nodeName=");
    let pods = list(&wire, &waiting).await?;
    let (watcher, from) = (Arc::clone(&wire), pods.metadata.resource_version.clone());
    let watch = tokio::spawn(async move { watch_and_drop(&watcher, from).await });
    sleep(SETTLE).await;
    let (wire, targets) = (&wire, nodes.items.iter().cycle());
    // Not those that only stand in the way of schedulers: some cannot be bound at all.
    let measured = pods.items.iter().filter(|pod| pod.metadata.name.starts_with(MEASURED));
    let bindings: Vec<_> = measured.zip(targets).collect();
    stream::iter(bindings)
        .map(|(pod, node)| bind(wire, &pod.metadata, &node.metadata.name, leader))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    // It ends with an error or not at all.
    watch.await.map_err(|problem| Error::malformed("watching Pods", problem))?
}

/// The API server ends watches that cannot keep up for a moment; as a scheduler does, the next goes on where
/// the last ended.
async fn watch_and_drop(wire: &Wire, mut from: String) -> Result<()> {
    loop {
        let path = format!(
            "/api/v1/pods?watch=true&resourceVersion={from}&timeoutSeconds={WATCH_SECONDS}"
        );
        let note = |piece: &[u8]| {
            if let Some(version) = last_version(piece) {
                from = version;
            }
        };
        wire.read_and_drop(&path, "application/json", note).await?;
    }
}

/// The last version that stands whole in a piece of a watch.
fn last_version(piece: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"\"resourceVersion\":\"";
    let start = piece.windows(BEFORE.len()).rposition(|window| window == BEFORE)? + BEFORE.len();
    let length = piece[start..].iter().position(|byte| *byte == b'"')?;
    String::from_utf8(piece[start..start + length].to_vec()).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_version_is_found() {
        let piece = br#"{"resourceVersion":"7"} {"resourceVersion":"12","#;
        assert_eq!(last_version(piece).as_deref(), Some("12"));
        assert_eq!(last_version(br#"{"resourceVersion":"1"#), None);
    }
}
