//! The claims of the Pod, sorted by what is left to do for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    BindingMode, ClusterPod, ObjectKey, PersistentVolume, PersistentVolumeClaim, PodVolume,
};

use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::failure::FailureCause;
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::volume_problem::VolumeProblem;

/// In the order of the Pod's volumes, each once: a claim that is listed twice needs one volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimsToBind {
    pub bound: Vec<Arc<PersistentVolumeClaim>>,
    /// Those that wait for the Pod to have a Node.
    pub delayed: Vec<Arc<PersistentVolumeClaim>>,
    /// The PersistentVolumes of their classes, the smallest first.
    pub volumes: BTreeMap<Arc<str>, Vec<Arc<PersistentVolume>>>,
}

pub(super) fn pre_filter(
    PodContext { cluster, pod, .. }: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    if pod.volumes.is_empty() {
        return Ok(());
    }
    let mut claims: Vec<Arc<PersistentVolumeClaim>> = Vec::new();
    for volume in pod.volumes.iter() {
        let Some(name) = volume.claim() else { continue };
        let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
        let claim = usable_claim(cluster, pod, volume, key).map_err(|problem| {
            let plugin = Plugin::VolumeBinding;
            PreFilterStatus::Rejected(Reason::Volume { plugin, problem })
        })?;
        if !claims.iter().any(|known| known.key == claim.key) {
            claims.push(claim.clone());
        }
    }
    let to_bind = &mut state.claims_to_bind;
    let mut is_any_immediate = false;
    for claim in claims {
        if claim.bound_to().is_some() {
            to_bind.bound.push(claim);
        } else if is_delayed(cluster, &claim)? && claim.volume_name.is_none() {
            to_bind.delayed.push(claim);
        } else {
            is_any_immediate = true;
        }
    }
    if is_any_immediate {
        return Err(PreFilterStatus::Rejected(Reason::UNBOUND_IMMEDIATE_CLAIMS));
    }
    to_bind.volumes = volumes_of_classes(cluster, &to_bind.delayed);
    Ok(())
}

fn usable_claim<'a>(
    cluster: &'a Cluster,
    pod: &ClusterPod,
    volume: &PodVolume,
    key: ObjectKey,
) -> Result<&'a Arc<PersistentVolumeClaim>, VolumeProblem> {
    let is_ephemeral = matches!(volume, PodVolume::Ephemeral(_));
    let Some(claim) = cluster.objects.claims.get(&key) else {
        return Err(if is_ephemeral {
            VolumeProblem::ClaimNotMade { claim: key }
        } else {
            VolumeProblem::ClaimNotFound { claim: key, is_looked_up: false }
        });
    };
    if claim.is_lost {
        let volume = claim.volume_name.clone().unwrap_or_default();
        return Err(VolumeProblem::ClaimLost { claim: key, volume });
    }
    if claim.is_deleting {
        return Err(VolumeProblem::ClaimDeleted { claim: key });
    }
    if is_ephemeral && claim.controller.as_ref() != Some(&pod.uid) {
        return Err(VolumeProblem::ClaimNotOwned { claim: key, pod: pod.key.clone() });
    }
    Ok(claim)
}

/// A claim without a class, or of a class that does not exist, is bound without waiting.
fn is_delayed(cluster: &Cluster, claim: &PersistentVolumeClaim) -> Result<bool, PreFilterStatus> {
    let Some(class) = cluster.objects.storage_classes.get(&claim.class) else { return Ok(false) };
    let Some(mode) = class.binding_mode else {
        let problem = VolumeProblem::ClassWithoutBindingMode { class: claim.class.clone() };
        let why = FailureCause::Volume(problem.to_string().into());
        return Err(PreFilterStatus::Failed(why));
    };
    Ok(!claim.class.is_empty() && mode == BindingMode::WaitForFirstConsumer)
}

pub(super) fn volumes_of_classes(
    cluster: &Cluster,
    claims: &[Arc<PersistentVolumeClaim>],
) -> BTreeMap<Arc<str>, Vec<Arc<PersistentVolume>>> {
    let mut volumes: BTreeMap<_, Vec<Arc<PersistentVolume>>> =
        claims.iter().map(|claim| (claim.class.clone(), Vec::new())).collect();
    if volumes.is_empty() {
        return volumes;
    }
    for volume in cluster.objects.volumes.values() {
        if let Some(of_class) = volumes.get_mut(&volume.class) {
            of_class.push(volume.clone());
        }
    }
    for of_class in volumes.values_mut() {
        of_class.sort_by(|a, b| a.capacity.cmp(&b.capacity).then_with(|| a.name.cmp(&b.name)));
    }
    volumes
}
