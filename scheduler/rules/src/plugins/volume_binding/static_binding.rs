//! The PersistentVolumes that claims take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AccessModes, LabelSelector, Labels, ObjectKey, PersistentVolume, PersistentVolumeClaim,
    Quantity, VolumeMode,
};

use super::filter::Parts;
use crate::assumed_volumes::VolumeOwner;
use crate::cluster::Cluster;
use crate::plugins::Plugin;
use crate::reason::Reason;

/// By claim.
pub(super) type StaticBindings<'a> = BTreeMap<ObjectKey, &'a PersistentVolume>;

/// What a claim asks of a PersistentVolume, but for its selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VolumeRequest {
    class: Arc<str>,
    request: Quantity,
    volume_mode: VolumeMode,
    attributes_class: Arc<str>,
    access_modes: AccessModes,
}

impl VolumeRequest {
    pub fn of(claim: &PersistentVolumeClaim) -> Self {
        Self {
            class: claim.class.clone(),
            request: claim.request,
            volume_mode: claim.volume_mode,
            attributes_class: claim.attributes_class.clone(),
            access_modes: claim.access_modes,
        }
    }

    /// What is asked even of a volume that is reserved for the claim.
    fn is_met(&self, volume: &PersistentVolume) -> bool {
        volume.class == self.class
            && volume.capacity >= self.request
            && volume.volume_mode == self.volume_mode
            && volume.attributes_class == self.attributes_class
            && !volume.is_deleting
    }
}

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
    if let Some(own) = own_volume(parts.cluster, claim) {
        return if own.fits(labels) { vec![own] } else { Vec::new() };
    }
    let request = VolumeRequest::of(claim);
    let free = free_volumes(parts.cluster, &request, labels);
    let is_selected = |volume: &&PersistentVolume| {
        claim.selector.as_ref().is_none_or(|it| it.matches(&volume.labels))
    };
    free.filter(is_selected).collect()
}

/// The PersistentVolume that is reserved for the claim, or about to be: the smallest, if there are several.
pub(crate) fn own_volume<'a>(
    cluster: &'a Cluster,
    claim: &PersistentVolumeClaim,
) -> Option<&'a PersistentVolume> {
    let assumed = &cluster.assumed_volumes;
    let request = VolumeRequest::of(claim);
    let names = cluster.volume_index.reserved(&claim.key).chain(assumed.volumes_of(&claim.key));
    let volumes = names.filter_map(|name| cluster.objects.volumes.get(name)).map(|it| &**it);
    let own = volumes.filter(|volume| {
        assumed.owner(volume, claim) == VolumeOwner::Own && request.is_met(volume)
    });
    own.min_by(|a, b| (a.capacity, &a.name).cmp(&(b.capacity, &b.name)))
}

/// Those that a claim without a selector can take on a Node with these labels, the smallest first.
pub(crate) fn free_volumes<'a>(
    cluster: &'a Cluster,
    request: &VolumeRequest,
    labels: &Labels,
) -> impl Iterator<Item = &'a PersistentVolume> {
    let near = cluster.volume_index.free_near(&request.class, labels).into_iter();
    let near = near.filter_map(|name| cluster.objects.volumes.get(name)).map(|it| &**it);
    near.filter(move |volume| {
        cluster.assumed_volumes.claim_of(&volume.name).is_none()
            && request.is_met(volume)
            && volume.fits(labels)
            && volume.access_modes.include(request.access_modes)
    })
}
