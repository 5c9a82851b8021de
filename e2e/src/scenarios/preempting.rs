//! A more important Pod takes the place of another.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::nominating::nominated;
use super::{TEAM, ensure_contains, until_bound};
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::observe::PATIENCE;
use crate::recorder::{Recorder, versions_of};

const URGENT: i32 = 1000;
const NODE: &str = "node-1";

/// The victim is told before it is deleted, and why; the Pod in whose favour it goes is promised the
/// Node meanwhile, and then bound there.
pub async fn important_pod_takes_a_place(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_priority_class("urgent", URGENT).await?;
    cluster.create_nodes(1, &NodeTemplate::new("1", "16Gi")).await?;
    let recorder = Recorder::start(cluster.admin()).await?;
    let scheduler = cluster.start_scheduler().await?;

    // No kubelet is there to end it gracefully.
    let victim = PodTemplate::new("800m", "64Mi").spec("terminationGracePeriodSeconds", json!(0));
    let victim = victim.create(cluster.admin(), TEAM, "victim").await?;
    until_bound(cluster, TEAM, "victim").await?;
    let urgent = PodTemplate::new("800m", "64Mi").priority("urgent", URGENT);
    let urgent = urgent.create(cluster.admin(), TEAM, "urgent").await?;
    let bound = until_bound(cluster, TEAM, "urgent").await?;
    let is_promised = nominated(&bound).is_some() && clears_nominations(cluster).await;
    ensure(!is_promised, || "it is still promised what it has".to_owned())?;

    let event = cluster.until_event(TEAM, "victim", "Preempted").await?;
    let message = event.message.unwrap_or_default();
    ensure_contains(&message, &[urgent.uid_str(), NODE])?;
    let versions = recorder.finish(PATIENCE).await?;
    let told = versions_of(&versions, victim.uid_str()).iter().any(|it| is_told(&it.pod));
    ensure(told, || "the victim was deleted without being told".to_owned())?;
    let promised = versions_of(&versions, urgent.uid_str());
    let promised = promised.iter().any(|it| nominated(&it.pod) == Some(NODE));
    ensure(promised, || "the Node was never promised to the Pod that took it".to_owned())?;

    let scraped = scheduler.metrics().await?;
    let count = |metric| crate::metrics::sum(&scraped, metric, &[]);
    for metric in ["scheduler_preemption_attempts_total", "scheduler_preemption_victims_sum"] {
        let counted = count(metric);
        ensure((counted - 1.0).abs() < f64::EPSILON, || format!("{metric} is {counted}"))?;
    }
    Ok(())
}

/// That it will go, and why, while it is still there.
fn is_told(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let reason = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True")
        .and_then(|condition| condition.reason.as_deref());
    reason == Some("PreemptionByScheduler") && pod.metadata.deletion_timestamp.is_none()
}

/// The first release whose API server takes the nomination from a Pod that is bound. Earlier ones leave it, on the node
/// where the Pod is, and it says nothing any more.
const CLEARS_NOMINATIONS_SINCE_MINOR: u32 = 34;

async fn clears_nominations(cluster: &Cluster) -> bool {
    let version = cluster.admin().apiserver_version().await;
    let minor = version.ok().and_then(|it| it.git_version.split('.').nth(1)?.parse::<u32>().ok());
    minor.is_none_or(|minor| minor >= CLEARS_NOMINATIONS_SINCE_MINOR)
}
