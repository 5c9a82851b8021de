use std::collections::BTreeMap;

use model::PodUid;

use super::Order;

/// Pods to be tried now, best first. No two have the same order.
#[derive(Debug, Default)]
pub(crate) struct ActiveQueue {
    pods: BTreeMap<Order, PodUid>,
}

impl ActiveQueue {
    pub fn push(&mut self, pod: PodUid, order: Order) {
        self.pods.insert(order, pod);
    }

    pub fn pop(&mut self) -> Option<PodUid> {
        self.pods.pop_first().map(|(_, pod)| pod)
    }

    pub fn remove(&mut self, order: Order) {
        self.pods.remove(&order);
    }

    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}
