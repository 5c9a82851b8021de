//! Who uses what behind volumes, kept up to date with every object and Pod: no rule searches all objects for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use model::{
    ClusterPod, CsiStorageCapacity, Labels, NodeName, ObjectKey, PersistentVolume,
    PersistentVolumeClaim, PodUid, Quantity, VolumeAttachment, VolumePhase, VolumeSource,
};

use crate::by_topology::ByTopology;
use crate::plugins::ClusterObjectChange;

/// Derived from the objects of a cluster and the Pods on its Nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VolumeIndex {
    /// The Pods on Nodes that use each claim.
    users: Sets<ObjectKey, PodUid>,
    attachments: Sets<NodeName, Arc<str>>,
    /// The VolumeAttachments of each PersistentVolume.
    attachments_of: Sets<Arc<str>, Arc<str>>,
    /// The claims that name each PersistentVolume.
    claims: Sets<Arc<str>, ObjectKey>,
    /// The PersistentVolumes that name each claim.
    reserved: Sets<ObjectKey, Arc<str>>,
    /// The PersistentVolumes of each class.
    by_class: Sets<Arc<str>, Arc<str>>,
    free: HashMap<Arc<str>, FreeVolumes, FixedState>,
    capacities: HashMap<Arc<str>, ByTopology<ObjectKey>, FixedState>,
}

/// The PersistentVolumes of a class that a claim may take: available, and reserved for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FreeVolumes {
    /// The smallest first.
    by_topology: ByTopology<(Quantity, Arc<str>)>,
    /// How many of them a CSI driver attaches.
    attachable: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sets<K: Eq + std::hash::Hash, V>(HashMap<K, BTreeSet<V>, FixedState>);

impl<K: Eq + std::hash::Hash, V> Default for Sets<K, V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Clone + Eq + std::hash::Hash, V: Ord + Clone> Sets<K, V> {
    fn set(&mut self, key: &K, value: &V, is_in: bool) {
        if is_in {
            self.0.entry_ref(key).or_default().insert(value.clone());
        } else if let Some(values) = self.0.get_mut(key) {
            values.remove(value);
            if values.is_empty() {
                self.0.remove(key);
            }
        }
    }

    fn of(&self, key: &K) -> impl Iterator<Item = &V> + use<'_, K, V> {
        self.0.get(key).into_iter().flatten()
    }
}

impl VolumeIndex {
    pub fn follow(&mut self, change: &ClusterObjectChange) {
        match change {
            ClusterObjectChange::PersistentVolume { before, after } => {
                self.each(before.as_deref(), after.as_deref(), Self::volume);
            }
            ClusterObjectChange::PersistentVolumeClaim { before, after } => {
                self.each(before.as_deref(), after.as_deref(), Self::claim);
            }
            ClusterObjectChange::VolumeAttachment { before, after } => {
                self.each(before.as_ref(), after.as_ref(), Self::attachment);
            }
            ClusterObjectChange::CsiStorageCapacity { before, after } => {
                self.each(before.as_ref(), after.as_ref(), Self::capacity);
            }
            _ => {}
        }
    }

    fn each<T>(
        &mut self,
        before: Option<&T>,
        after: Option<&T>,
        set: impl Fn(&mut Self, &T, bool),
    ) {
        for (object, is_in) in [(before, false), (after, true)] {
            if let Some(object) = object {
                set(self, object, is_in);
            }
        }
    }

    /// A Pod has come to a Node, or left it.
    pub fn pod(&mut self, pod: &ClusterPod, is_in: bool) {
        for name in pod.volumes.iter().filter_map(model::PodVolume::claim) {
            let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
            self.users.set(&key, &pod.uid, is_in);
        }
    }

    fn volume(&mut self, volume: &PersistentVolume, is_in: bool) {
        self.by_class.set(&volume.class, &volume.name, is_in);
        if let Some(claim_ref) = &volume.claim_ref {
            self.reserved.set(&claim_ref.key, &volume.name, is_in);
        }
        if !is_free(volume) {
            return;
        }
        let free = self.free.entry_ref(&volume.class).or_default();
        let narrowing = volume.node_affinity.as_ref().and_then(model::NodeSelector::narrowest);
        let entry = (volume.capacity, volume.name.clone());
        let is_attachable = usize::from(volume.source != VolumeSource::Other);
        if is_in {
            free.by_topology.insert(narrowing, &entry);
            free.attachable += is_attachable;
            return;
        }
        free.by_topology.remove(narrowing, &entry);
        free.attachable -= is_attachable;
        if free.by_topology.is_empty() {
            self.free.remove(&volume.class);
        }
    }

    fn claim(&mut self, claim: &PersistentVolumeClaim, is_in: bool) {
        if let Some(volume) = &claim.volume_name {
            self.claims.set(volume, &claim.key, is_in);
        }
    }

    fn attachment(&mut self, attachment: &VolumeAttachment, is_in: bool) {
        self.attachments.set(&attachment.node, &attachment.name, is_in);
        if let Some(volume) = &attachment.volume_name {
            self.attachments_of.set(volume, &attachment.name, is_in);
        }
    }

    fn capacity(&mut self, capacity: &CsiStorageCapacity, is_in: bool) {
        let Some(topology) = &capacity.node_topology else { return };
        let of_class = self.capacities.entry_ref(&capacity.class).or_default();
        if is_in {
            of_class.insert(topology.narrowest(), &capacity.key);
            return;
        }
        of_class.remove(topology.narrowest(), &capacity.key);
        if of_class.is_empty() {
            self.capacities.remove(&capacity.class);
        }
    }

    /// The Pods on Nodes that use the claim; some of these Nodes may not exist.
    pub fn users(&self, claim: &ObjectKey) -> impl Iterator<Item = &PodUid> {
        self.users.of(claim)
    }

    /// The claims that name the PersistentVolume.
    pub fn claims_naming(&self, volume: &Arc<str>) -> impl Iterator<Item = &ObjectKey> {
        self.claims.of(volume)
    }

    /// The PersistentVolumes that name the claim, by their names.
    pub fn reserved(&self, claim: &ObjectKey) -> impl Iterator<Item = &Arc<str>> {
        self.reserved.of(claim)
    }

    /// The PersistentVolumes of the class, by their names.
    pub fn of_class(&self, class: &Arc<str>) -> impl Iterator<Item = &Arc<str>> {
        self.by_class.of(class)
    }

    pub fn attachments(&self, node: &NodeName) -> impl Iterator<Item = &Arc<str>> {
        self.attachments.of(node)
    }

    /// Of the PersistentVolume.
    pub fn attachments_of(&self, volume: &Arc<str>) -> impl Iterator<Item = &Arc<str>> {
        self.attachments_of.of(volume)
    }

    /// The names of the free PersistentVolumes of a class that may be usable on a Node with these labels, the smallest
    /// first.
    pub fn free_near(&self, class: &str, labels: &Labels) -> Vec<&Arc<str>> {
        let near = self.free.get(class).map(|free| free.by_topology.near(labels));
        near.unwrap_or_default().into_iter().map(|(_, name)| name).collect()
    }

    pub fn has_free(&self, class: &str) -> bool {
        self.free.contains_key(class)
    }

    /// Whether a CSI driver attaches one of the free PersistentVolumes of the class.
    pub fn has_free_attachable(&self, class: &str) -> bool {
        self.free.get(class).is_some_and(|free| free.attachable > 0)
    }

    /// The CSIStorageCapacities of a class that may count on a Node with these labels.
    pub fn capacities_near(&self, class: &str, labels: &Labels) -> Vec<&ObjectKey> {
        self.capacities.get(class).map(|it| it.near(labels)).unwrap_or_default()
    }
}

pub(crate) fn is_free(volume: &PersistentVolume) -> bool {
    volume.claim_ref.is_none() && volume.phase == VolumePhase::Available && !volume.is_deleting
}
