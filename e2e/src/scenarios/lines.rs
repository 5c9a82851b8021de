//! The order of Pods in line, and what a silent backend does.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::SYSTEM_NAMESPACE;
use crate::checkers::Limits;
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::leases::{CORRD_LEASE, write_lease};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{FAILURE_POLICY, PodState as _, PodTemplate, delete_pod};
use crate::observe::{PATIENCE, Seen, until_pods};
use crate::recorder::Recorder;

const URGENT: &str = "urgent";
const URGENT_PRIORITY: i32 = 1000;

/// Held Pods of which only one fits at a time are bound by priority, then by arrival.
pub async fn held_pods_bind_in_order(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_priority_class(URGENT, URGENT_PRIORITY).await?;
    cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    let _lease = cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create(cluster.admin(), TEAM, "c1", 100).await?;
    corridor.set_status("Degraded", 0).await?;
    let limits = Limits::read(cluster.admin(), &[&corridor]).await?;
    let recorder = Recorder::start(cluster.admin()).await?;
    let _scheduler = cluster.start_scheduler().await?;

    let sixty = PodTemplate::small().corridor(&corridor, "60");
    let urgent = sixty.clone().priority(URGENT, URGENT_PRIORITY);
    // By name they would come in another order than by arrival.
    for (name, template) in [("z-first", &sixty), ("a-second", &sixty), ("m-urgent", &urgent)] {
        template.create(cluster.admin(), TEAM, name).await?;
        let message = until_held(cluster, TEAM, name).await?;
        ensure_contains(&message, &["corridor team-a/c1 (Degraded)"])?;
    }

    corridor.set_status("Ready", 100).await?;
    for expected in ["m-urgent", "z-first", "a-second"] {
        let any_bound = |seen: &Seen<Pod>| seen.values().any(|pod| pod.node().is_some());
        let awaited = format!("Pod {expected} to be bound");
        let seen = until_pods(&cluster.pods(TEAM), &awaited, PATIENCE, any_bound).await?;
        let bound = seen.iter().filter(|(_, pod)| pod.node().is_some()).map(|(name, _)| name);
        let bound: Vec<_> = bound.collect();
        ensure(bound == [&format!("{TEAM}/{expected}")], || {
            format!("it is the turn of {expected}, but {bound:?} are bound")
        })?;
        delete_pod(cluster.admin(), TEAM, expected).await?;
    }
    limits.check(&recorder.finish(PATIENCE).await?).map(drop)
}

/// The backend's Lease has not been renewed for long: the corridor's status is not believed until it is.
pub async fn stale_backend_holds_pods(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_namespace(SYSTEM_NAMESPACE).await?;
    cluster.create_nodes(1, &NodeTemplate::new("4", "16Gi")).await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    let long_ago = Timestamp::now() - SignedDuration::from_mins(1);
    write_lease(cluster.admin(), CORRD_LEASE, long_ago).await?;
    let _scheduler = cluster.start_scheduler().await?;

    let ten = PodTemplate::small().corridor(&corridor, "10");
    ten.create(cluster.admin(), TEAM, "patient").await?;
    let message = until_held(cluster, TEAM, "patient").await?;
    ensure_contains(&message, &["corridor team-a/c1"])?;
    // It stands in no line, so nothing but the Lease brings it back: the Corridor is Ready all the time.
    let hasty = ten.annotation(FAILURE_POLICY, "FailFast");
    hasty.create(cluster.admin(), TEAM, "hasty").await?;
    let message = until_held(cluster, TEAM, "hasty").await?;
    ensure_contains(&message, &["FailFast: ", "corrd has not reported"])?;

    let _lease = cluster.hold_corrd_lease().await?;
    until_bound(cluster, TEAM, "patient").await?;
    until_bound(cluster, TEAM, "hasty").await.map(drop)
}
