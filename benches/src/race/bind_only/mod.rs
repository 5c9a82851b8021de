//! The limit: a client that has nothing to decide.
//!
//! It has the scheduler's account and so its rights, policies and place in the API server's queues; it holds
//! one watch on Pods, which it throws away, keeps as many Bindings in flight, and annotates them alike. Of a Pod whose
//! claim is not bound it first writes what schedulers write, and waits until a watch shows the claim bound.

mod claims;
mod watch;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use e2e::{Error, Result};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::drain::MEASURED;
use super::wire::Wire;
use claims::{Annotations, ClaimWrite, Unbound, WriteKind};
use watch::{watch_and_drop, watch_claims};

/// As many as the scheduler keeps (`driver/slots.rs`).
const IN_FLIGHT: usize = 64;
/// The scheduler waits as long after it has won, before it binds. By then the fence knows its Lease.
const SETTLE: Duration = Duration::from_secs(1);

/// What the Pods that it binds have as `schedulerName`.
pub const SCHEDULER_NAME: &str = "bind-only";

/// Binds every measured Pod of [`SCHEDULER_NAME`] to the Nodes in turn, then waits to be killed, so that what
/// it cost can be read.
pub async fn run(kubeconfig: &Path, leader: &str) -> Result<()> {
    let wire = Arc::new(Wire::new(kubeconfig).await?);
    let nodes: List<Item> = list(&wire, "/api/v1/nodes").await?;
    let waiting =
        format!("/api/v1/pods?fieldSelector=spec.schedulerName={SCHEDULER_NAME},spec.nodeName=");
    let pods: List<Item> = list(&wire, &waiting).await?;
    let mut watches = vec![drop_all(&wire, "/api/v1/pods", pods.metadata.resource_version)];
    // Not those that only stand in the way of schedulers: some cannot be bound at all.
    let measured = pods.items.into_iter().filter(|pod| pod.metadata.name.starts_with(MEASURED));
    let measured: Vec<Item> = measured.collect();
    let (tell_bound, bound) = unbounded_channel();
    let mut claims = None;
    if measured.iter().any(|pod| pod.claim().is_some()) {
        let read = Unbound::read(&wire).await?;
        watches.push(drop_all(&wire, "/api/v1/persistentvolumes", read.volumes_version.clone()));
        let (of_claims, from) = (Arc::clone(&wire), read.claims_version.clone());
        watches.push(async move { watch_claims(&of_claims, from, tell_bound).await }.boxed());
        claims = Some(read);
    }
    let targets = nodes.items.iter().map(|node| node.metadata.name.as_str()).cycle();
    let jobs: Vec<Job> = measured
        .into_iter()
        .zip(targets)
        .map(|(pod, node)| Job::new(pod, node, claims.as_mut()))
        .collect();
    let mut watches: FuturesUnordered<_> = watches.into_iter().map(tokio::spawn).collect();
    sleep(SETTLE).await;
    work(&wire, jobs, bound, leader).await?;
    // They end with an error or not at all.
    let ended = watches.next().await;
    ended.map_or(Ok(()), |it| it.map_err(|problem| Error::malformed("watching", problem))?)
}

fn drop_all(
    wire: &Arc<Wire>,
    collection: &'static str,
    from: String,
) -> BoxFuture<'static, Result<()>> {
    let wire = Arc::clone(wire);
    async move { watch_and_drop(&wire, collection, from).await }.boxed()
}

/// One Pod, where it goes, and what must come before.
#[derive(Debug)]
struct Job {
    pod: Metadata,
    node: String,
    write: Option<ClaimWrite>,
}

impl Job {
    fn new(pod: Item, node: &str, claims: Option<&mut Unbound>) -> Self {
        let write = claims.and_then(|claims| claims.write_for(&pod));
        let node = match write.as_ref().map(|it| &it.kind) {
            Some(WriteKind::Volume { node, .. }) => node,
            _ => node,
        };
        Self { node: node.to_owned(), pod: pod.metadata, write }
    }
}

/// As the scheduler does: what can be bound comes first, and a Pod that waits for its claim takes up no place.
async fn work(
    wire: &Wire,
    jobs: Vec<Job>,
    mut bound: UnboundedReceiver<String>,
    leader: &str,
) -> Result<()> {
    let (mut to_write, mut ready): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().rev().partition(|job| job.write.is_some());
    let mut awaited: HashMap<String, Job> = HashMap::new();
    let mut in_flight: FuturesUnordered<BoxFuture<'_, Result<()>>> = FuturesUnordered::new();
    loop {
        while in_flight.len() < IN_FLIGHT {
            if let Some(job) = ready.pop() {
                in_flight
                    .push(async move { bind(wire, &job.pod, &job.node, leader).await }.boxed());
            } else if let Some(mut job) = to_write.pop() {
                let Some(write) = job.write.take() else { continue };
                let node = job.node.clone();
                awaited.insert(write.claim.clone(), job);
                in_flight.push(
                    async move {
                        let (path, body) = write.patch(&node);
                        wire.merge_patch(path, &body).await
                    }
                    .boxed(),
                );
            } else {
                break;
            }
        }
        if in_flight.is_empty() && awaited.is_empty() {
            return Ok(());
        }
        tokio::select! {
            Some(done) = in_flight.next() => done?,
            Some(claim) = bound.recv() => ready.extend(awaited.remove(&claim)),
            else => return Err(Error::malformed("waiting for claims", "the watch has ended")),
        }
    }
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

async fn list<T: DeserializeOwned>(wire: &Wire, path: &str) -> Result<List<T>> {
    let bytes = wire.get(path).await?;
    serde_json::from_slice(&bytes).map_err(|problem| Error::malformed(path, problem))
}

#[derive(Deserialize)]
struct List<T> {
    metadata: Metadata,
    items: Vec<T>,
}

/// A Node or Pod.
#[derive(Debug, Deserialize)]
struct Item {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    volumes: Vec<Volume>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: String,
}

impl Item {
    /// The claim of a Pod; there is at most one in the workloads.
    fn claim(&self) -> Option<&str> {
        let mut claims =
            self.spec.volumes.iter().filter_map(|it| it.persistent_volume_claim.as_ref());
        claims.next().map(|it| it.claim_name.as_str())
    }
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    annotations: Annotations,
}
