//! The Nodes with each value of the labels that volumes are found by.

use std::sync::Arc;

use model::ClusterNode;
use rules::Cluster;

use super::FixedMap;
use super::rows::{Rows, Slot};

#[derive(Debug, Default)]
pub(super) struct LabelledNodes {
    labels: FixedMap<Arc<str>, Label>,
}

/// Drivers bring a label or two each. With more than these all are forgotten, and read again when needed.
const LABELS_MAX: usize = 64;

#[derive(Debug, Default)]
struct Label {
    slots: FixedMap<Arc<str>, Vec<Slot>>,
    of_node: FixedMap<Slot, Arc<str>>,
}

impl LabelledNodes {
    /// `node`: `None` when it is gone.
    pub fn put(&mut self, slot: Slot, node: Option<&ClusterNode>) {
        for (name, label) in &mut self.labels {
            label.put(slot, node.and_then(|node| node.node.labels.get(name)));
        }
    }

    /// The Nodes with this value. A label that nobody has asked about is read from all Nodes first.
    pub fn with(
        &mut self,
        label: &Arc<str>,
        value: &str,
        rows: &Rows,
        cluster: &Cluster,
    ) -> &[Slot] {
        if self.labels.len() >= LABELS_MAX && !self.labels.contains_key(label) {
            self.labels.clear();
        }
        let known = self.labels.entry_ref(label).or_insert_with(|| {
            let mut known = Label::default();
            for (name, node) in &cluster.nodes {
                if let Some(slot) = rows.slot_of(name) {
                    known.put(slot, node.node.labels.get(label));
                }
            }
            known
        });
        known.slots.get(value).map_or(&[], Vec::as_slice)
    }
}

impl Label {
    fn put(&mut self, slot: Slot, value: Option<&Arc<str>>) {
        if self.of_node.get(&slot) == value {
            return;
        }
        if let Some(before) = self.of_node.remove(&slot)
            && let Some(slots) = self.slots.get_mut(&before)
        {
            slots.retain(|it| *it != slot);
            if slots.is_empty() {
                self.slots.remove(&before);
            }
        }
        if let Some(value) = value {
            self.of_node.insert(slot, value.clone());
            self.slots.entry(value.clone()).or_default().push(slot);
        }
    }
}
