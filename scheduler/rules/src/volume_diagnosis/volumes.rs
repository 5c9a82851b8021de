//! What each PersistentVolume of a class lacks for a claim.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ClusterNode, PersistentVolume, PersistentVolumeClaim, Quantity, VolumePhase};
use serde::{Deserialize, Serialize};

use crate::assumed_volumes::{AssumedVolumes, VolumeOwner};
use crate::cluster::Cluster;

/// The PersistentVolumes of the class of a claim, none of which it can take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumesLookedAt {
    pub looked_at: usize,
    /// Each is counted once, for the first that it lacks.
    pub reasons: Vec<VolumesLacking>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumesLacking {
    pub lack: VolumeLack,
    pub count: usize,
    /// The largest of them.
    pub largest: Quantity,
    /// One of them: of that size.
    pub example: Arc<str>,
}

/// In the order in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VolumeLack {
    BoundToOthers,
    /// Their claims are gone, and nobody has made them available again.
    Released,
    TooSmall,
    VolumeMode,
    AttributesClass,
    Deleting,
    NotAvailable,
    Selector,
    AccessModes,
    /// Another is reserved for the claim, which takes no other then.
    AnotherIsReserved,
    /// On the same Node another claim of the Pod takes it.
    OtherClaimOfPod,
    /// It lacks nothing, but no Node that it can be used on takes the Pod.
    Nodes,
}

impl VolumeLack {
    /// It lacks nothing by itself.
    pub(crate) const fn is_of_nodes(self) -> bool {
        matches!(self, Self::OtherClaimOfPod | Self::Nodes)
    }
}

/// One pass through the volumes of the class of the claim. The Nodes are some of those that have no volume for the
/// claim.
pub(crate) fn looked_at(
    cluster: &Cluster,
    claim: &PersistentVolumeClaim,
    nodes: &[&ClusterNode],
) -> VolumesLookedAt {
    let assumed = &cluster.assumed_volumes;
    let names = cluster.volume_index.of_class(&claim.class);
    let mut volumes: Vec<&PersistentVolume> =
        names.filter_map(|name| cluster.objects.volumes.get(name)).map(|it| &**it).collect();
    volumes.sort_by(|a, b| a.capacity.cmp(&b.capacity).then_with(|| a.name.cmp(&b.name)));
    let mut by_lack: BTreeMap<VolumeLack, VolumesLacking> = BTreeMap::new();
    let is_own = |it: &&&PersistentVolume| assumed.owner(it, claim) == VolumeOwner::Own;
    let reserved = volumes.iter().find(|it| is_own(it)).map(|it| &it.name);
    for volume in &volumes {
        let lack = match first_lack(assumed, claim, volume) {
            Some(lack) => lack,
            None if reserved.is_some_and(|name| *name != volume.name) => {
                VolumeLack::AnotherIsReserved
            }
            None if nodes.iter().any(|node| volume.fits(&node.node.labels)) => {
                VolumeLack::OtherClaimOfPod
            }
            None => VolumeLack::Nodes,
        };
        let (largest, example) = (volume.capacity, volume.name.clone());
        let first = VolumesLacking { lack, count: 0, largest, example };
        let lacking = by_lack.entry(lack).or_insert(first);
        lacking.count += 1;
        if lacking.largest < volume.capacity {
            lacking.largest = volume.capacity;
            lacking.example = volume.name.clone();
        }
    }
    VolumesLookedAt { looked_at: volumes.len(), reasons: by_lack.into_values().collect() }
}

/// What VolumeBinding asks of a volume, whatever the Node.
fn first_lack(
    assumed: &AssumedVolumes,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Option<VolumeLack> {
    let owner = assumed.owner(volume, claim);
    if owner == VolumeOwner::Other {
        let is_released = volume.phase == VolumePhase::Released;
        return Some(if is_released { VolumeLack::Released } else { VolumeLack::BoundToOthers });
    }
    let is_selected = claim.selector.as_ref().is_none_or(|it| it.matches(&volume.labels));
    let of_every = [
        (volume.capacity >= claim.request, VolumeLack::TooSmall),
        (volume.volume_mode == claim.volume_mode, VolumeLack::VolumeMode),
        (volume.attributes_class == claim.attributes_class, VolumeLack::AttributesClass),
        (!volume.is_deleting, VolumeLack::Deleting),
    ];
    let of_free = [
        (volume.phase == VolumePhase::Available, VolumeLack::NotAvailable),
        (is_selected, VolumeLack::Selector),
        (volume.access_modes.include(claim.access_modes), VolumeLack::AccessModes),
    ];
    let of_free = of_free.into_iter().filter(|_| owner == VolumeOwner::Free);
    let mut unmet = of_every.into_iter().chain(of_free).filter(|(holds, _)| !holds);
    unmet.next().map(|(_, lack)| lack)
}
