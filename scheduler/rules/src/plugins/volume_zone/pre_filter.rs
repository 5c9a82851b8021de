//! The zones and regions of the volumes that the Pod's claims are bound to.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    BindingMode, ObjectKey, PersistentVolume, PersistentVolumeClaim, PodVolume, StorageClass,
};

use super::filter::KEYS;
use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::volume_problem::VolumeProblem;

/// Labels of which the Node must have one of the values. All must hold.
pub(crate) type ZoneConditions = Vec<(&'static str, BTreeSet<Arc<str>>)>;

pub(super) fn pre_filter(
    PodContext { cluster, pod, .. }: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    for volume in pod.volumes.iter() {
        // kube-scheduler does not look at ephemeral volumes here.
        let PodVolume::Claim(name) = volume else { continue };
        let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
        let Some(claim) = cluster.objects.claims.get(&key) else {
            let problem = VolumeProblem::ClaimNotFound { claim: key, is_looked_up: false };
            return Err(rejected(problem));
        };
        let Some(volume_name) = &claim.volume_name else {
            waits_for_its_consumer(cluster, claim)?;
            continue;
        };
        let Some(volume) = cluster.objects.volumes.get(volume_name) else {
            return Err(rejected(VolumeProblem::VolumeNotFound { volume: volume_name.clone() }));
        };
        state.volume_zones.extend(conditions(volume));
    }
    Ok(())
}

/// What has no volume yet is looked at by VolumeBinding, if it waits for this Pod.
fn waits_for_its_consumer(
    cluster: &Cluster,
    claim: &PersistentVolumeClaim,
) -> Result<(), PreFilterStatus> {
    let name = &claim.class;
    if name.is_empty() {
        return Err(PreFilterStatus::Rejected(Reason::CLAIM_WITHOUT_CLASS));
    }
    match cluster.objects.storage_classes.get(name) {
        None => Err(rejected(VolumeProblem::ClassNotFound { class: name.clone() })),
        Some(StorageClass { binding_mode: None, .. }) => {
            Err(rejected(VolumeProblem::ClassWithoutBindingMode { class: name.clone() }))
        }
        Some(StorageClass { binding_mode: Some(BindingMode::WaitForFirstConsumer), .. }) => Ok(()),
        Some(StorageClass { binding_mode: Some(BindingMode::Immediate), .. }) => {
            Err(PreFilterStatus::Rejected(Reason::CLAIM_NOT_BOUND))
        }
    }
}

fn rejected(problem: VolumeProblem) -> PreFilterStatus {
    PreFilterStatus::Rejected(Reason::Volume { plugin: Plugin::VolumeZone, problem })
}

pub(super) fn conditions(
    volume: &PersistentVolume,
) -> impl Iterator<Item = (&'static str, BTreeSet<Arc<str>>)> {
    KEYS.into_iter().filter_map(|key| Some((key, zones(volume.labels.get(key)?)?)))
}

/// Zones are separated by `__`. A list with an empty part says nothing at all.
fn zones(label: &str) -> Option<BTreeSet<Arc<str>>> {
    let parts = label.split("__").map(str::trim);
    parts.map(|zone| (!zone.is_empty()).then(|| zone.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_lists_zones_and_one_with_an_empty_part_lists_none() {
        let of = |label: &str| {
            zones(label).map(|it| it.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(of("a"), Some(vec!["a".to_owned()]));
        assert_eq!(of("b__ a "), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(of("a____b"), None);
        assert_eq!(of(""), None);
    }
}
