//! The quick form of VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone together. First a Pod is asked what
//! depends on which volumes it has, then its class, which knows what they ask of a Node. What labels decide is judged
//! with the node filters (`node_filter_classes.rs`).

use model::{NodeName, PodVolumeBindings};
use rules::{Cluster, PodVolumeNeeds, Reason, VolumeChange};
use smallvec::SmallVec;

use super::node_index::NodeIndex;
use super::pod_classes::PodClass;
use super::rows::Slot;
use super::score_cache::Context;
use super::{NAMED_MAX, Placing, View};

impl Placing {
    /// A placed Pod has taken these, or has let go of them.
    pub fn volumes_moved(&mut self, volumes: &PodVolumeBindings, cluster: &Cluster) {
        self.index.volumes_changed(VolumeChange::Released(volumes), cluster);
    }

    /// The only Nodes that may take the volumes, if they are few: those that labels name, as of local volumes.
    pub fn few_nodes_for(
        &mut self,
        volumes: &PodVolumeNeeds,
        cluster: &Cluster,
    ) -> Option<Vec<NodeName>> {
        if let Some(node) = &volumes.selected_node {
            return Some(vec![node.clone()]);
        }
        let NodeIndex { labelled, rows, .. } = &mut self.index;
        volumes.needs.narrowings().find_map(|(label, values)| {
            let mut slots: SmallVec<[Slot; NAMED_MAX]> = SmallVec::new();
            for value in values {
                let with = labelled.with(label, value, rows, cluster);
                if slots.len() + with.len() > NAMED_MAX {
                    return None;
                }
                slots.extend_from_slice(with);
            }
            Some(slots.into_iter().filter_map(|slot| rows.name(slot).cloned()).collect())
        })
    }

    /// Whether a Node to which one of these volumes is attached has room for the rest of them, and not for all.
    pub fn has_room_for_rest(&self, volumes: &PodVolumeNeeds) -> bool {
        let attached = &self.index.attached;
        let mut holders = attached.holders(&volumes.attachables);
        holders.any(|slot| {
            !attached.has_room(slot, &volumes.needs)
                && attached.has_room_for(slot, &volumes.attachables)
        })
    }
}

impl PodClass {
    /// Whether the Node, whose labels suit its volumes, has room for them.
    pub fn takes_volumes(&self, slot: Slot, context: Context<'_>) -> bool {
        let Context { view: View { cluster, .. }, index, .. } = context;
        let Some(volumes) = &self.volumes else { return true };
        let has_storage = |name| {
            let node = cluster.nodes.get(name);
            node.is_some_and(|it| volumes.find_storage(cluster, &it.node.labels))
        };
        index.attached.has_room(slot, volumes)
            && (!volumes.look_at_storage() || index.rows.name(slot).is_some_and(has_storage))
    }

    /// What the score cache goes by.
    pub fn is_known_to_take_volumes(&self, slot: Slot) -> bool {
        self.volumes.is_none() || self.has_volume_room.get(slot as usize).is_some_and(|it| *it)
    }

    pub fn look_at_all_volumes(&mut self, context: Context<'_>) {
        if self.volumes.is_some() {
            let slots = context.index.rows.slots();
            self.has_volume_room = slots.map(|slot| self.takes_volumes(slot, context)).collect();
        }
    }

    /// The Node has changed.
    pub fn look_at_volumes(&mut self, slot: Slot, context: Context<'_>) {
        if self.volumes.is_none() {
            return;
        }
        let takes = self.takes_volumes(slot, context);
        if let Some(known) = self.has_volume_room.get_mut(slot as usize) {
            *known = takes;
        }
    }

    /// Why the Node does not take its volumes.
    pub fn reasons_of_volumes(&self, slot: Slot, context: Context<'_>, reasons: &mut Vec<Reason>) {
        let Context { view: View { cluster, .. }, index, .. } = context;
        let Some(volumes) = &self.volumes else { return };
        let node = index.rows.name(slot).and_then(|name| cluster.nodes.get(name));
        let is_attachable = index.attached.has_room(slot, volumes);
        let of_node = |labels| volumes.reasons(cluster, labels, is_attachable);
        reasons.extend(node.into_iter().flat_map(|node| of_node(&node.node.labels)));
    }
}
