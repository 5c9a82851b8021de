//! Which Nodes have which container images.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{ClusterNode, NodeImage, NodeName};

use super::FixedMap;
use super::rows::{Rows, Slot};

type ImageId = usize;

#[derive(Debug, Default)]
pub(super) struct Images {
    ids: FixedMap<Arc<NodeImage>, ImageId>,
    all: Vec<KnownImage>,
    free: Vec<ImageId>,
    /// Images that bear the name, most often one.
    by_name: FixedMap<Arc<str>, Vec<ImageId>>,
    /// What each Node has, by its place.
    on_node: Vec<Arc<[Arc<NodeImage>]>>,
}

/// An image that some Node has.
#[derive(Debug, Default)]
struct KnownImage {
    slots: Vec<Slot>,
    /// The first of those Nodes by name.
    first: Option<NodeName>,
}

impl Images {
    pub fn put(&mut self, slot: Slot, node: &ClusterNode, rows: &Rows) {
        if self.on_node.len() <= slot as usize {
            self.on_node.resize(slot as usize + 1, Arc::default());
        }
        let before = std::mem::replace(&mut self.on_node[slot as usize], node.images.clone());
        let after = &node.images;
        if Arc::ptr_eq(&before, after) {
            return;
        }
        for image in distinct(&before).filter(|image| !after.contains(image)) {
            self.take_away(slot, image, rows);
        }
        for image in distinct(after).filter(|image| !before.contains(image)) {
            self.add(slot, image, &node.node.name);
        }
    }

    pub fn remove(&mut self, slot: Slot, rows: &Rows) {
        let Some(images) = self.on_node.get_mut(slot as usize) else { return };
        let images = std::mem::take(images);
        for image in distinct(&images) {
            self.take_away(slot, image, rows);
        }
    }

    fn add(&mut self, slot: Slot, image: &Arc<NodeImage>, node: &NodeName) {
        let Self { ids, all, free, by_name, .. } = self;
        let id = *ids.entry(image.clone()).or_insert_with(|| {
            let id = free.pop().unwrap_or_else(|| {
                all.push(KnownImage::default());
                all.len() - 1
            });
            for name in &image.names {
                let bearers = by_name.entry(name.clone()).or_default();
                if !bearers.contains(&id) {
                    bearers.push(id);
                }
            }
            id
        });
        let known = &mut all[id];
        known.slots.push(slot);
        if known.first.as_ref().is_none_or(|first| node < first) {
            known.first = Some(node.clone());
        }
    }

    fn take_away(&mut self, slot: Slot, image: &Arc<NodeImage>, rows: &Rows) {
        let Some(id) = self.ids.get(image).copied() else { return };
        let known = &mut self.all[id];
        known.slots.retain(|holder| *holder != slot);
        if known.first.as_ref() == rows.name(slot) {
            known.first = known.slots.iter().filter_map(|slot| rows.name(*slot)).min().cloned();
        }
        if !known.slots.is_empty() {
            return;
        }
        self.ids.remove(image);
        self.free.push(id);
        for name in &image.names {
            if let Some(bearers) = self.by_name.get_mut(name) {
                bearers.retain(|other| *other != id);
                if bearers.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }

    fn bearers(&self, name: &Arc<str>) -> &[ImageId] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The Nodes that have an image of this name; some may come twice.
    pub fn holders(&self, name: &Arc<str>) -> impl Iterator<Item = Slot> {
        self.bearers(name).iter().flat_map(|id| self.all[*id].slots.iter().copied())
    }

    pub fn has(&self, slot: Slot, name: &Arc<str>) -> bool {
        let on_node = self.on_node.get(slot as usize);
        self.by_name.contains_key(name)
            && on_node.is_some_and(|images| images.iter().any(|it| it.names.contains(name)))
    }

    /// The size of the image, times the share of all Nodes that have it. As the plain rules do it, the
    /// first Node by name says how large it is.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "kube-scheduler multiplies as doubles too; the cast saturates"
    )]
    pub fn spread_size(&self, name: &Arc<str>, rows: &Rows) -> i64 {
        let bearers = self.bearers(name);
        let first = bearers.iter().filter_map(|id| self.all[*id].first.as_ref()).min();
        let first = first.and_then(|node| self.on_node.get(rows.slot_of(node)? as usize));
        let image = first.and_then(|images| images.iter().find(|it| it.names.contains(name)));
        let holders = match bearers {
            [only] => self.all[*only].slots.len(),
            _ => self.holders(name).collect::<BTreeSet<Slot>>().len(),
        };
        let share = holders as f64 / rows.nodes() as f64;
        (image.map_or(0, |image| image.size_bytes) as f64 * share) as i64
    }
}

/// A Node may list an image twice.
fn distinct(images: &[Arc<NodeImage>]) -> impl Iterator<Item = &Arc<NodeImage>> {
    let is_first = |(place, image): &(usize, &Arc<NodeImage>)| !images[..*place].contains(image);
    images.iter().enumerate().filter(is_first).map(|(_, image)| image)
}
