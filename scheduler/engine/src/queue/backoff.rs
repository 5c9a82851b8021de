use std::cmp::Reverse;
use std::time::Duration;

use foldhash::fast::FixedState;
use model::{Instant, PodUid};
use priority_queue::PriorityQueue;

use super::Order;

/// kube-scheduler's defaults: a Pod that cannot be placed is tried again after
/// 1, 2, 4, 8, 10, 10 … seconds when something relevant has changed.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// How long a Pod must wait after its `failures`-th failed attempt in a row.
pub(crate) fn backoff_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
}

/// Pods that may be tried again at a known time.
#[derive(Debug, Default)]
pub(crate) struct BackoffQueue {
    pods: PriorityQueue<PodUid, Reverse<(Instant, Order)>, FixedState>,
}

impl BackoffQueue {
    pub fn push(&mut self, pod: PodUid, due: Instant, order: Order) {
        self.pods.push(pod, Reverse((due, order)));
    }

    pub fn pop_due(&mut self, now: Instant) -> Option<PodUid> {
        if self.next_due()? > now {
            return None;
        }
        self.pods.pop().map(|(pod, _)| pod)
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.pods.peek().map(|(_, Reverse((due, _)))| *due)
    }

    pub fn remove(&mut self, pod: &PodUid) {
        self.pods.remove(pod);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_ten_seconds_and_stays_there() {
        let seconds: Vec<u64> =
            [1, 2, 3, 4, 5, 40].map(|failures| backoff_after(failures).as_secs()).into();
        assert_eq!(seconds, [1, 2, 4, 8, 10, 10]);
    }
}
