//! What is asked about the volumes of one Pod before its class is: what depends on which volumes they are.

use model::{NodeName, PodVolumeBindings};
use rules::{Cluster, PodVolumeNeeds, VolumeChange};
use smallvec::SmallVec;

use super::node_index::NodeIndex;
use super::rows::Slot;
use super::{NAMED_MAX, Placing};

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
