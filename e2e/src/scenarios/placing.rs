//! CPU, memory and taints.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::try_join;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::checkers::Limits;
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::observe::{PATIENCE, Seen, until, until_pods};
use crate::recorder::Recorder;

const PODS: usize = 50;
const OTHERS: usize = 5;
const NODES: usize = 5;
/// A promise to users, and the only limit of time here that is meant to bite.
const ALL_BOUND_WITHIN: Duration = Duration::from_secs(5);

/// 50 Pods over 5 Nodes are bound within 5 seconds, spread over all of them, each with an Event;
/// Pods of another scheduler are left alone.
pub async fn fifty_pods_over_five_nodes(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(NODES, &NodeTemplate::new("4", "16Gi")).await?;
    let limits = Limits::read(cluster.admin(), &[]).await?;
    let recorder = Recorder::start(cluster.admin()).await?;
    let scheduler = cluster.start_scheduler().await?;

    let started = Instant::now();
    let theirs = PodTemplate::small().spec("schedulerName", json!("somebody-else"));
    let ours = PodTemplate::new("200m", "256Mi");
    let (theirs, _) = try_join(
        cluster.create_pods(TEAM, "theirs", OTHERS, &theirs),
        cluster.create_pods(TEAM, "ours", PODS, &ours),
    )
    .await?;
    let pods = until_pods(&cluster.pods(TEAM), "50 Pods to be bound", PATIENCE, |seen| {
        seen.values().filter(|pod| pod.node().is_some()).count() >= PODS
    })
    .await?;
    let took = started.elapsed();
    ensure(took <= ALL_BOUND_WITHIN, || format!("50 Pods were bound only after {took:?}"))?;

    ensure_spread(&pods)?;
    ensure_untouched(&theirs, &pods)?;
    until_each_has_event(cluster, "Scheduled", "ours-", PODS).await?;
    limits.check(&recorder.finish(PATIENCE).await?)?;
    ensure_exit_code_zero(scheduler.terminate().await?)
}

/// Equal Pods on equal empty Nodes: no Node may stay nearly empty, or get half of all.
fn ensure_spread(pods: &Seen<Pod>) -> Result<()> {
    let mut per_node = BTreeMap::<_, usize>::new();
    for node in pods.values().filter_map(|pod| pod.node()) {
        *per_node.entry(node).or_default() += 1;
    }
    let fair = PODS / NODES;
    let even = per_node.values().all(|count| (fair / 2..=fair * 2).contains(count));
    ensure(per_node.len() == NODES && even, || format!("the Pods are badly spread: {per_node:?}"))
}

fn ensure_untouched(created: &[Pod], now: &Seen<Pod>) -> Result<()> {
    for before in created {
        let after = now.get(&format!("{TEAM}/{}", before.name_any()));
        let untouched =
            after.is_some_and(|after| after.resource_version() == before.resource_version());
        ensure(untouched, || format!("Pod {} of another scheduler changed", before.name_any()))?;
    }
    Ok(())
}

/// Events come behind the binds.
async fn until_each_has_event(
    cluster: &Cluster,
    reason: &str,
    prefix: &str,
    count: usize,
) -> Result<()> {
    let events: Api<Event> = Api::namespaced(cluster.admin().clone(), TEAM);
    let awaited = format!("an Event {reason} for each of {count} Pods");
    until(&events, &awaited, PATIENCE, |seen| {
        let about = seen.values().filter(|event| event.reason.as_deref() == Some(reason));
        let names = about.filter_map(|event| event.involved_object.name.as_deref());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort_unstable();
        names.dedup();
        names.len() == count
    })
    .await
    .map(drop)
}

fn ensure_exit_code_zero(code: i32) -> Result<()> {
    ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))
}

/// A Pod that no Node can take says why, Node by Node, and is bound when one can.
pub async fn pod_that_fits_nowhere_says_why(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes_numbered(1..=2, &NodeTemplate::new("1", "16Gi")).await?;
    let reserved = NodeTemplate::new("4", "16Gi").taint("reserved-for", "somebody-else");
    cluster.create_nodes_numbered(3..=5, &reserved).await?;
    let _scheduler = cluster.start_scheduler().await?;

    PodTemplate::new("2", "1Gi").create(cluster.admin(), TEAM, "large").await?;
    let message = until_held(cluster, TEAM, "large").await?;
    let expected = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s). no new claims \
                    to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.";
    ensure(message == expected, || format!("{message:?} is not {expected:?}"))?;
    let event = cluster.until_event(TEAM, "large", "FailedScheduling").await?;
    ensure_contains(event.message.as_deref().unwrap_or_default(), &[expected])?;

    cluster.create_nodes_numbered([6], &NodeTemplate::new("4", "16Gi")).await?;
    let pod = until_bound(cluster, TEAM, "large").await?;
    ensure(pod.node() == Some("node-6"), || format!("it is bound to {:?}", pod.node()))
}

/// Pods that want to be alone get a Node each, and one too many waits until there is another.
pub async fn pods_keep_apart(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    let _scheduler = cluster.start_scheduler().await?;
    let alone = json!({ "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": "kubernetes.io/hostname", "labelSelector": {} },
        ],
    }});
    let alone = PodTemplate::small().spec("affinity", alone);
    let mut nodes = Vec::new();
    for name in ["first", "second"] {
        alone.create(cluster.admin(), TEAM, name).await?;
        nodes.push(until_bound(cluster, TEAM, name).await?.node().map(str::to_owned));
    }
    ensure(nodes[0] != nodes[1], || format!("both are bound to {:?}", nodes[0]))?;
    alone.create(cluster.admin(), TEAM, "third").await?;
    let message = until_held(cluster, TEAM, "third").await?;
    ensure_contains(&message, &["2 node(s) didn't match pod anti-affinity rules"])?;
    cluster.create_nodes_numbered([3], &NodeTemplate::new("4", "16Gi")).await?;
    let pod = until_bound(cluster, TEAM, "third").await?;
    ensure(pod.node() == Some("node-3"), || format!("it is bound to {:?}", pod.node()))
}
