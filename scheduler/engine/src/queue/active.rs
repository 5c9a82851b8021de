use std::cmp::Reverse;

use foldhash::fast::FixedState;
use model::PodUid;
use priority_queue::PriorityQueue;

use super::Order;

/// Pods to be tried now, best first.
#[derive(Debug, Default)]
pub(crate) struct ActiveQueue {
    pods: PriorityQueue<PodUid, Reverse<Order>, FixedState>,
}

impl ActiveQueue {
    pub fn push(&mut self, pod: PodUid, order: Order) {
        self.pods.push(pod, Reverse(order));
    }

    pub fn pop(&mut self) -> Option<PodUid> {
        self.pods.pop().map(|(pod, _)| pod)
    }

    pub fn remove(&mut self, pod: &PodUid) {
        self.pods.remove(pod);
    }

    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}
