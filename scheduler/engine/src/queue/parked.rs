use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ObjectRef, PodSpec, PodUid, Shape};

use super::Order;

/// Pods that fit on no Node, grouped so that a changed Node is compared once with
/// each kind of Pod, not with each Pod.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    groups: BTreeMap<ParkKey, BTreeMap<Order, PodUid>>,
}

/// Pods with the same key fit on the same Nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ParkKey {
    pub shape: Arc<Shape>,
    pub objects: Vec<ObjectRef>,
}

impl ParkKey {
    pub fn of(spec: &PodSpec) -> Self {
        let objects = spec.needs.iter().map(|need| need.object.clone()).collect();
        Self { shape: spec.shape.clone(), objects }
    }
}

impl Parked {
    pub fn insert(&mut self, key: ParkKey, order: Order, pod: PodUid) {
        self.groups.entry(key).or_default().insert(order, pod);
    }

    pub fn remove(&mut self, key: &ParkKey, order: Order) {
        let Some(group) = self.groups.get_mut(key) else { return };
        group.remove(&order);
        if group.is_empty() {
            self.groups.remove(key);
        }
    }

    /// Each kind of Pod that waits.
    pub fn keys(&self) -> impl Iterator<Item = &ParkKey> {
        self.groups.keys()
    }

    /// The Pods of one kind, first in order first.
    pub fn group(&self, key: &ParkKey) -> impl Iterator<Item = (Order, &PodUid)> {
        self.groups.get(key).into_iter().flatten().map(|(order, pod)| (*order, pod))
    }
}
