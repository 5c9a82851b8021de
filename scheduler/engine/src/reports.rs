//! The queue of reports, and how often a report on one Pod may be written.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{Instant, NodeName, ObjectRef, PodUid};
use priority_queue::PriorityQueue;

use crate::decision::Report;
use crate::queue::QueuePosition;
use crate::rejection::Fingerprint;

/// For one Pod: the first write at once, then this many more at once …
const BURST: u32 = 3;
/// … then one in this time. Live figures come from `explain`.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);
/// Half a kilobyte each: some minutes of binding at full speed, until the API server has time for Events.
const EVENTS_WAITING_MAX: usize = 100_000;

/// A report to a namespace whose writes are overdue is retried after this long.
const PUT_OFF: Duration = Duration::from_secs(5);

/// Events about bound Pods wait behind Bindings. Those above the limit are counted and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventQueue {
    pub waiting_max: usize,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { waiting_max: EVENTS_WAITING_MAX }
    }
}

/// What was written about one Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReportState {
    /// Why it waits, and its nominated Node.
    pub written: Option<Box<(Fingerprint, Option<NodeName>)>>,
    /// Being written now: the next one waits for its outcome.
    pub in_flight: bool,
    /// Something new came up meanwhile.
    pub again: bool,
    writes: u32,
    last_write: Instant,
}

impl ReportState {
    /// When the next write is allowed.
    fn allowed_at(&self) -> Instant {
        if self.writes <= BURST { Instant::START } else { self.last_write + WRITE_INTERVAL }
    }

    pub fn wrote(&mut self, now: Instant, told: (Fingerprint, Option<NodeName>)) {
        self.written = Some(Box::new(told));
        self.in_flight = true;
        self.again = false;
        self.writes = self.writes.saturating_add(1);
        self.last_write = now;
    }

    /// What was to be written was not.
    fn put_off(&mut self) {
        self.written = None;
        self.in_flight = false;
        self.writes = self.writes.saturating_sub(1);
    }
}

/// Reports to be written. An unschedulable Pod is queued by UID only: the report is made from its state when it is
/// written, so it is never stale.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reports {
    scheduled: VecDeque<Report>,
    /// With when they are looked at again. No later one is due before an earlier one.
    scheduled_later: VecDeque<(Instant, Report)>,
    unschedulable: VecDeque<PodUid>,
    #[serde(skip)]
    unschedulable_members: BTreeSet<PodUid>,
    /// Objects whose waiting Pods may all need a new report, and how far the walk has come. A long queue is walked in
    /// small steps, behind everything urgent.
    #[serde(with = "model::pairs")]
    queues: BTreeMap<ObjectRef, Walk>,
    /// Ordered by UID among those due at the same time: no two runs differ.
    #[serde(with = "crate::serde_due")]
    later: PriorityQueue<PodUid, Reverse<(Instant, PodUid)>>,
    pub dropped: u64,
    last_was_scheduled: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Walk {
    after: Option<QueuePosition>,
    /// It changed again meanwhile: once more from the start, but not before the end was reached,
    /// or a flapping object would keep the last in its queue from ever being reported.
    again: bool,
}

impl Reports {
    pub fn queue_changed(&mut self, object: &ObjectRef) {
        let walk = self.queues.entry(object.clone()).or_default();
        walk.again = walk.after.is_some();
    }

    /// A queue to walk, and from where.
    pub fn queue_to_walk(&self) -> Option<(ObjectRef, Option<QueuePosition>)> {
        self.queues.first_key_value().map(|(object, walk)| (object.clone(), walk.after.clone()))
    }

    /// The walk has come to this place; `None`: to the end.
    pub fn walked(&mut self, object: &ObjectRef, to: Option<QueuePosition>) {
        let Some(walk) = self.queues.get_mut(object) else { return };
        if to.is_some() {
            walk.after = to;
        } else if walk.again {
            *walk = Walk::default();
        } else {
            self.queues.remove(object);
        }
    }

    pub fn scheduled(&mut self, report: Report, queue: EventQueue) {
        if self.is_full(queue) {
            self.dropped += 1;
            return;
        }
        self.scheduled.push_back(report);
    }

    /// An Event that cannot be written now.
    pub fn put_off_scheduled(&mut self, now: Instant, report: Report, queue: EventQueue) {
        if self.is_full(queue) {
            self.dropped += 1;
            return;
        }
        self.scheduled_later.push_back((now + PUT_OFF, report));
    }

    fn is_full(&self, queue: EventQueue) -> bool {
        self.scheduled.len() + self.scheduled_later.len() >= queue.waiting_max
    }

    /// A report on an unschedulable Pod that cannot be written now.
    pub fn put_off_unschedulable(&mut self, now: Instant, pod: &PodUid, state: &mut ReportState) {
        state.put_off();
        self.later.push(pod.clone(), Reverse((now + PUT_OFF, pod.clone())));
    }

    pub fn unschedulable(&mut self, now: Instant, pod: &PodUid, state: &ReportState) {
        let at = state.allowed_at();
        if at <= now {
            self.push_unschedulable(pod);
        } else {
            self.later.push(pod.clone(), Reverse((at, pod.clone())));
        }
    }

    pub fn advance(&mut self, now: Instant) {
        while self.next_unschedulable_due().is_some_and(|due| due <= now) {
            if let Some((pod, _)) = self.later.pop() {
                self.push_unschedulable(&pod);
            }
        }
        while let Some((_, report)) = self.scheduled_later.pop_front_if(|(at, _)| *at <= now) {
            self.scheduled.push_back(report);
        }
    }

    pub fn next_due(&self) -> Option<Instant> {
        let scheduled = self.scheduled_later.front().map(|(at, _)| *at);
        self.next_unschedulable_due().into_iter().chain(scheduled).min()
    }

    fn next_unschedulable_due(&self) -> Option<Instant> {
        self.later.peek().map(|(_, Reverse((at, _)))| *at)
    }

    pub fn is_turn_of_scheduled(&self) -> bool {
        !self.last_was_scheduled
    }

    pub fn pop_scheduled(&mut self) -> Option<Report> {
        let report = self.scheduled.pop_front();
        self.last_was_scheduled = report.is_some();
        report
    }

    pub fn pop_unschedulable(&mut self) -> Option<PodUid> {
        let pod = self.unschedulable.pop_front()?;
        self.last_was_scheduled = false;
        self.unschedulable_members.remove(&pod);
        Some(pod)
    }

    pub fn has_unschedulable(&self) -> bool {
        !self.unschedulable.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.scheduled.is_empty() && self.unschedulable.is_empty() && self.queues.is_empty()
    }

    /// Events about bound Pods that are still to be written outlive everything derived.
    pub fn only_scheduled(self) -> Self {
        Self {
            scheduled: self.scheduled,
            scheduled_later: self.scheduled_later,
            dropped: self.dropped,
            ..Self::default()
        }
    }

    pub fn forget(&mut self, pod: &PodUid) {
        self.later.remove(pod);
    }

    /// After it was read: what is queued is queued once.
    pub fn with_members(mut self) -> Self {
        self.unschedulable_members = self.unschedulable.iter().cloned().collect();
        self
    }

    fn push_unschedulable(&mut self, pod: &PodUid) {
        if self.unschedulable_members.insert(pod.clone()) {
            self.unschedulable.push_back(pod.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Order;
    use model::Amount;

    #[test]
    fn four_writes_at_once_then_one_in_thirty_seconds() {
        let mut state = ReportState::default();
        let now = Instant::START + Duration::from_secs(100);
        for _ in 0..4 {
            assert!(state.allowed_at() <= now);
            state.wrote(now, (Fingerprint::Quarantined, None));
        }
        assert_eq!(state.allowed_at(), now + WRITE_INTERVAL);
    }

    #[test]
    fn a_queue_that_changes_while_it_is_walked_is_walked_to_its_end_first() {
        let object = crate::testkit::corridor("c1");
        let place = |amount| QueuePosition {
            namespace: "a".into(),
            amount: Amount::from_whole(amount),
            order: Order::new(0, 0, 0),
        };
        let mut reports = Reports::default();
        reports.queue_changed(&object);
        reports.walked(&object, Some(place(1)));
        reports.queue_changed(&object);
        assert_eq!(reports.queue_to_walk(), Some((object.clone(), Some(place(1)))));
        reports.walked(&object, None);
        assert_eq!(reports.queue_to_walk(), Some((object.clone(), None)), "once more");
        reports.walked(&object, None);
        assert!(reports.is_empty());
    }

    #[test]
    fn a_pod_is_queued_once_however_often_it_changes() {
        let mut reports = Reports::default();
        let pod = PodUid::new("p");
        for _ in 0..3 {
            reports.unschedulable(Instant::START, &pod, &ReportState::default());
        }
        assert_eq!(reports.pop_unschedulable(), Some(pod));
        assert_eq!(reports.pop_unschedulable(), None);
    }
}
