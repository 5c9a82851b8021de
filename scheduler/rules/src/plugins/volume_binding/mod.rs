//! VolumeBinding: the claims of the Pod are bound to volumes that the Node reaches, or can be bound there.

mod affinity;
mod diagnosis;
mod filter;
mod pre_filter;
mod provision;
mod rearrange;
mod static_binding;

pub(crate) use diagnosis::{bound_claims, delayed_claims, immediate_claims, sort_claims};
pub(super) use filter::find;
pub(crate) use pre_filter::ClaimsToBind;
pub(crate) use provision::{has_room, makes_volumes, publishes_capacity};
pub(crate) use static_binding::{VolumeRequest, free_volumes, own_volume};

use model::{ClusterNode, ClusterPod, PodVolumeBindings};

use super::Point::{Filter, PreBind, PreFilter, PreScore, Reserve, Score};
use super::{Plugin, Registration, reasons};
use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::failure::Failure;
use crate::reason::Reason;
use crate::rules::Rules;

pub(super) const PLUGIN: Registration = Registration {
    pre_filter: Some(pre_filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    // Its score belongs to a feature that is off by default: it takes part and says nothing.
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score, Reserve, PreBind])
};

reasons! {
    VolumeBinding:
    VOLUME_NODE_AFFINITY = unresolvable(
        "node(s) didn't match PersistentVolume's node affinity",
        wakes_on: "a node that its volumes can be used on",
    ),
    NO_VOLUME_TO_BIND = unresolvable(
        "node(s) didn't find available persistent volumes to bind",
        wakes_on: "a PersistentVolume that its claims can take, or a class that makes one",
    ),
    NOT_ENOUGH_STORAGE = unresolvable(
        "node(s) did not have enough free storage",
        wakes_on: "more capacity of its storage class",
    ),
    BOUND_VOLUME_NOT_FOUND = unresolvable(
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        wakes_on: "the PersistentVolume of its claim is created",
    ),
    /// Of the Pod as a whole.
    UNBOUND_IMMEDIATE_CLAIMS = unresolvable(
        "pod has unbound immediate PersistentVolumeClaims",
        wakes_on: "its claims are bound",
    ),
}

/// What has to be written before the Pod can be bound to the Node, or why its claims keep it from there. Where several
/// PersistentVolumes are as good, the name decides.
pub fn find_pod_volumes(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    node: &ClusterNode,
) -> Result<PodVolumeBindings, Vec<Reason>> {
    if !rules.filters_by(Plugin::VolumeBinding) {
        return Ok(PodVolumeBindings::default());
    }
    let mut state = CycleState::default();
    pre_filter::pre_filter(PodContext { rules, cluster, pod }, &mut state).map_err(|status| {
        vec![match status {
            PreFilterStatus::Rejected(reason) => reason,
            PreFilterStatus::Failed(why) => Failure { plugin: Plugin::VolumeBinding, why }.into(),
        }]
    })?;
    find(cluster, &state.claims_to_bind, node)
}
