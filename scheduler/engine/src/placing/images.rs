//! Which Nodes have which container images.

use std::sync::Arc;

use model::ClusterNode;

use super::FixedMap;
use super::rows::{Rows, Slot};

/// Fewer names than this are not worth forgetting.
const NAMES_MIN: usize = 1 << 14;

#[derive(Debug, Default)]
pub(super) struct Images {
    ids: FixedMap<Arc<str>, usize>,
    holders: Vec<Vec<(Slot, i64)>>,
    /// What each Node has, by its place.
    on_node: Vec<Vec<(usize, i64)>>,
    /// Names that no Node has any more.
    forgotten: usize,
}

impl Images {
    pub fn put(&mut self, slot: Slot, node: &ClusterNode) {
        let mut names: Vec<(&Arc<str>, i64)> = Vec::new();
        for image in &node.images {
            for name in &image.names {
                // The first one of a name counts.
                if !names.iter().any(|(known, _)| *known == name) {
                    names.push((name, image.size_bytes));
                }
            }
        }
        let listed = names.iter().map(|(name, size)| (self.ids.get(*name).copied(), *size));
        if self.is_same(slot, listed) {
            return;
        }
        self.remove(slot);
        if self.on_node.len() <= slot as usize {
            self.on_node.resize(slot as usize + 1, Vec::new());
        }
        for (name, size) in names {
            let next = self.holders.len();
            let id = *self.ids.entry(name.clone()).or_insert(next);
            if id == next {
                self.holders.push(Vec::new());
            }
            // Nobody had it, but somebody once did.
            self.forgotten -= usize::from(id != next && self.holders[id].is_empty());
            self.holders[id].push((slot, size));
            self.on_node[slot as usize].push((id, size));
        }
    }

    fn is_same(
        &self,
        slot: Slot,
        listed: impl ExactSizeIterator<Item = (Option<usize>, i64)>,
    ) -> bool {
        let known = self.on_node.get(slot as usize).map_or(&[][..], Vec::as_slice);
        let is_same = |((id, size), new): (&(usize, i64), _)| (Some(*id), *size) == new;
        known.len() == listed.len() && known.iter().zip(listed).all(is_same)
    }

    /// Whether most names that were ever seen, and many, are on no Node any more.
    pub fn is_overgrown(&self) -> bool {
        self.forgotten > NAMES_MIN && self.forgotten > self.holders.len() / 2
    }

    pub fn remove(&mut self, slot: Slot) {
        let Some(ids) = self.on_node.get_mut(slot as usize) else { return };
        for (id, _) in std::mem::take(ids) {
            self.holders[id].retain(|(holder, _)| *holder != slot);
            self.forgotten += usize::from(self.holders[id].is_empty());
        }
    }

    pub fn has(&self, slot: Slot, image: &Arc<str>) -> bool {
        let Some(id) = self.ids.get(image) else { return false };
        let on_node = self.on_node.get(slot as usize);
        on_node.is_some_and(|images| images.iter().any(|(it, _)| it == id))
    }

    /// The size of the image, times the share of all Nodes that have it. As the oracle does it, the
    /// first Node by name says how large it is.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "kube-scheduler multiplies as doubles too; the cast saturates"
    )]
    pub fn spread_size(&self, image: &Arc<str>, rows: &Rows) -> i64 {
        let Some(id) = self.ids.get(image) else { return 0 };
        let holders = &self.holders[*id];
        let first = holders.iter().min_by_key(|(slot, _)| rows.name(*slot));
        let size_bytes = first.map_or(0, |(_, size)| *size);
        let share = holders.len() as f64 / rows.nodes() as f64;
        (size_bytes as f64 * share) as i64
    }
}
