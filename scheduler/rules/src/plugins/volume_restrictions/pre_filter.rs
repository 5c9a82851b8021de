//! Who uses the claims of the Pod that are for one Pod only.

use std::collections::BTreeMap;

use model::{AccessMode, ClusterPod, ObjectKey, PodVolume};

use super::disk_conflict::is_exclusive;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::volume_problem::VolumeProblem;

/// Claims of the Pod with the access mode ReadWriteOncePod.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExclusiveClaims {
    /// How many Pods on Nodes use each.
    pub holders: BTreeMap<ObjectKey, i64>,
}

pub(super) fn pre_filter(
    PodContext { cluster, pod, .. }: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    if pod.volumes.is_empty() {
        return Ok(());
    }
    let mut holders = BTreeMap::new();
    for name in claims(pod) {
        let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
        let Some(claim) = cluster.objects.claims.get(&key) else {
            let problem = VolumeProblem::ClaimNotFound { claim: key, is_looked_up: false };
            let plugin = Plugin::VolumeRestrictions;
            return Err(PreFilterStatus::Rejected(Reason::Volume { plugin, problem }));
        };
        if claim.access_modes.contains(AccessMode::ReadWriteOncePod) {
            holders.insert(key, 0);
        }
    }
    for (claim, count) in &mut holders {
        let others = cluster.users(claim).filter(|other| other.uid != pod.uid);
        *count = others.map(|other| i64::from(uses(other, claim))).sum();
    }
    let has_disk = pod
        .volumes
        .iter()
        .any(|volume| matches!(volume, PodVolume::Disk(disk) if is_exclusive(disk)));
    // kube-scheduler leaves the rule out for any other Pod, also against Pods that come in thought only: a claim of
    // a nominated Pod goes unseen.
    let is_held = holders.values().any(|count| *count > 0);
    state.exclusive_claims = (has_disk || is_held).then_some(ExclusiveClaims { holders });
    Ok(())
}

/// Those that the Pod names itself. What is made for its ephemeral volumes is its own.
fn claims(pod: &ClusterPod) -> impl Iterator<Item = &std::sync::Arc<str>> {
    pod.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Claim(name) => Some(name),
        PodVolume::Ephemeral(_) | PodVolume::Disk(_) => None,
    })
}

/// kube-scheduler compares names without their namespaces here, and counts a claim as often as the Pod lists it.
pub(super) fn uses(pod: &ClusterPod, claim: &ObjectKey) -> bool {
    *pod.namespace() == claim.namespace && claims(pod).any(|name| *name == claim.name)
}
