//! How many volumes of each CSI driver are attached to the Nodes on which that is limited.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{ClusterPod, NodeName};
use rules::{Attachable, Cluster, VolumeNeeds};
use smallvec::SmallVec;

use super::FixedMap;
use super::rows::Slot;

#[derive(Debug, Default)]
pub(super) struct AttachedVolumes {
    /// `None`: nothing is limited there.
    on_node: Vec<Option<Box<OnNode>>>,
    holders: FixedMap<Attachable, SmallVec<[Slot; 1]>>,
    /// Nodes where something is limited.
    limited: usize,
}

#[derive(Debug)]
struct OnNode {
    drivers: Vec<Driver>,
    volumes: BTreeSet<Attachable>,
}

#[derive(Debug)]
struct Driver {
    name: Arc<str>,
    limit: i64,
    used: i64,
}

impl AttachedVolumes {
    /// Counts everything on a Node anew. `node`: `None` when it is gone. Returns whether anything is limited there, or was.
    pub fn renew(&mut self, slot: Slot, node: Option<&NodeName>, cluster: &Cluster) -> bool {
        let mut was_limited = false;
        if let Some(before) = self.on_node.get_mut(slot as usize).and_then(Option::take) {
            was_limited = true;
            self.limited -= 1;
            for volume in before.volumes {
                if let Some(slots) = self.holders.get_mut(&volume) {
                    slots.retain(|it| *it != slot);
                    if slots.is_empty() {
                        self.holders.remove(&volume);
                    }
                }
            }
        }
        let Some(node) = node else { return was_limited };
        let limits = rules::attach_limits(cluster, node);
        let drivers: Vec<Driver> =
            limits.map(|(name, limit)| Driver { name: name.clone(), limit, used: 0 }).collect();
        if drivers.is_empty() {
            return was_limited;
        }
        if self.on_node.len() <= slot as usize {
            self.on_node.resize_with(slot as usize + 1, || None);
        }
        self.limited += 1;
        self.on_node[slot as usize] = Some(Box::new(OnNode { drivers, volumes: BTreeSet::new() }));
        for volume in rules::attached_to(cluster, node) {
            self.add(slot, volume);
        }
        true
    }

    /// Whether any number of volumes can be attached, everywhere.
    pub fn is_unlimited(&self) -> bool {
        self.limited == 0
    }

    /// A Pod with volumes has come to the Node.
    pub fn pod_came(&mut self, slot: Slot, pod: &ClusterPod, node: &NodeName, cluster: &Cluster) {
        if self.on_node.get(slot as usize).is_none_or(Option::is_none) {
            return;
        }
        for volume in rules::attached_by(cluster, pod, node) {
            self.add(slot, volume);
        }
    }

    fn add(&mut self, slot: Slot, volume: Attachable) {
        let Some(Some(on_node)) = self.on_node.get_mut(slot as usize) else { return };
        let driver = on_node.drivers.iter_mut().find(|it| it.name == volume.0);
        // What is not limited need not be known.
        let Some(driver) = driver.filter(|_| on_node.volumes.insert(volume.clone())) else {
            return;
        };
        driver.used += 1;
        self.holders.entry(volume).or_default().push(slot);
    }

    /// Whether so many more volumes can be attached to the Node.
    pub fn has_room(&self, slot: Slot, needs: &VolumeNeeds) -> bool {
        let Some(Some(on_node)) = self.on_node.get(slot as usize) else { return true };
        on_node.drivers.iter().all(|driver| {
            let more = needs.attaches.get(&driver.name).copied().unwrap_or(0);
            more == 0 || driver.used.saturating_add_unsigned(more as u64) <= driver.limit
        })
    }

    /// Whether these volumes can be attached to the Node, as far as they are not yet.
    pub fn has_room_for(&self, slot: Slot, volumes: &[Attachable]) -> bool {
        let Some(Some(on_node)) = self.on_node.get(slot as usize) else { return true };
        on_node.drivers.iter().all(|driver| {
            let of_driver = volumes.iter().filter(|(name, _)| *name == driver.name);
            let more = of_driver.filter(|it| !on_node.volumes.contains(*it)).count();
            more == 0 || driver.used.saturating_add_unsigned(more as u64) <= driver.limit
        })
    }

    /// The Nodes to which one of these is attached.
    pub fn holders<'a>(
        &'a self,
        volumes: &'a [Attachable],
    ) -> impl Iterator<Item = Slot> + use<'a> {
        volumes.iter().filter_map(|it| self.holders.get(it)).flatten().copied()
    }
}
