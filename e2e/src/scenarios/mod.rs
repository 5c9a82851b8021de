//! The stories a scheduler must get right.
//!
//! Each takes a [`Cluster`] with nothing in it and runs the scheduler itself, so the same stories run
//! on a real API server and on a model of it. A time limit that is not part of a story is only there
//! to end a wait that is in vain.

mod bundles;
pub mod corridoros;
mod corridors;
mod crashes;
mod daemons;
mod device_classes;
pub mod devices;
mod draining;
mod lines;
mod nominating;
mod placing;
mod preempting;
mod refusals;
mod stopping;
pub mod volumes;

pub use bundles::pod_waits_for_corridor_and_bundle;
pub use corridors::pod_waits_for_its_corridor;
pub use crashes::killed_in_the_middle_of_500_pods;
pub use daemons::corridor_and_bundle_live_and_end;
pub use device_classes::extended_resource_of_a_device_class_is_unsupported;
pub use draining::releasing_corridor_drains;
pub use lines::{held_pods_bind_in_order, stale_backend_holds_pods};
pub use nominating::{
    lesser_pod_waits_for_promised_bandwidth, useless_nomination_is_withdrawn,
    victim_that_cannot_go_is_told_so,
};
pub use placing::{fifty_pods_over_five_nodes, pod_that_fits_nowhere_says_why, pods_keep_apart};
pub use preempting::important_pod_takes_a_place;
pub use refusals::pods_that_cannot_be_placed_say_why;
pub use stopping::stops_gracefully_under_load;

use k8s_openapi::api::core::v1::Pod;

use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::pods::PodState as _;

/// The namespace most stories play in.
const TEAM: &str = "team-a";

/// Waits until the scheduler says that a Pod has to wait, and returns the message.
async fn until_held(cluster: &Cluster, namespace: &str, name: &str) -> Result<String> {
    // A Pod that is bound by mistake is not worth waiting for.
    let held = |pod: &Pod| pod.waiting_message().is_some() || pod.node().is_some();
    let pod = cluster.until_pod(namespace, name, "held with a reason", held).await?;
    ensure(pod.node().is_none(), || {
        format!("Pod {namespace}/{name} must be held, but is bound to {:?}", pod.node())
    })?;
    let reason = pod.scheduled_condition().and_then(|condition| condition.reason.as_deref());
    ensure(reason == Some("Unschedulable"), || {
        format!("Pod {namespace}/{name} waits with the reason {reason:?}, not Unschedulable")
    })?;
    Ok(pod.waiting_message().unwrap_or_default().to_owned())
}

async fn until_bound(cluster: &Cluster, namespace: &str, name: &str) -> Result<Pod> {
    cluster.until_pod(namespace, name, "bound", |pod| pod.node().is_some()).await
}

fn ensure_contains(message: &str, parts: &[&str]) -> Result<()> {
    let missing: Vec<_> = parts.iter().filter(|part| !message.contains(**part)).collect();
    ensure(missing.is_empty(), || format!("{message:?} lacks {missing:?}"))
}
