//! The PersistentVolumes that claims take.

use std::collections::{BTreeMap, BTreeSet};

use model::{LabelSelector, ObjectKey, PersistentVolume, PersistentVolumeClaim, VolumePhase};

use super::filter::Parts;
use crate::assumed_volumes::VolumeOwner;
use crate::plugins::Plugin;
use crate::reason::Reason;

/// By claim.
pub(super) type StaticBindings<'a> = BTreeMap<ObjectKey, &'a PersistentVolume>;

/// One claim after the other takes the smallest that it can.
pub(super) fn choose_each<'a>(parts: &Parts<'a>) -> Result<StaticBindings<'a>, Reason> {
    let mut chosen = StaticBindings::new();
    let mut taken = BTreeSet::new();
    for claim in &parts.free {
        if let Some(LabelSelector::Invalid(why)) = &claim.selector {
            let key = &claim.key;
            let why = format!("error creating internal label selector for claim: {key}: {why}");
            return Err(Reason::Failed { plugin: Plugin::VolumeBinding, why: why.into() });
        }
        let mut choices = choices(parts, claim).into_iter();
        if let Some(volume) = choices.find(|volume| !taken.contains(&volume.name)) {
            taken.insert(&volume.name);
            chosen.insert(claim.key.clone(), volume);
        }
    }
    Ok(chosen)
}

/// Those that the claim can take on the Node, the smallest first. One that is reserved for it is the only one, and if
/// the Node does not reach that, there is none.
pub(super) fn choices<'a>(
    parts: &Parts<'a>,
    claim: &PersistentVolumeClaim,
) -> Vec<&'a PersistentVolume> {
    let labels = &parts.node.node.labels;
    let assumed = &parts.cluster.assumed_volumes;
    let mut choices = Vec::new();
    for volume in parts.volumes_of(claim) {
        let owner = assumed.owner(volume, claim);
        if owner == VolumeOwner::Other || !is_large_and_alike(volume, claim) {
            continue;
        }
        if owner == VolumeOwner::Own {
            return if volume.fits(labels) { vec![&**volume] } else { Vec::new() };
        }
        let is_selected = claim.selector.as_ref().is_none_or(|it| it.matches(&volume.labels));
        if volume.phase == VolumePhase::Available
            && is_selected
            && volume.fits(labels)
            && volume.access_modes.include(claim.access_modes)
        {
            choices.push(&**volume);
        }
    }
    choices
}

/// What is asked even of a volume that is reserved for the claim.
fn is_large_and_alike(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.capacity >= claim.request
        && volume.volume_mode == claim.volume_mode
        && volume.attributes_class == claim.attributes_class
        && !volume.is_deleting
}
