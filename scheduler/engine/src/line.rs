//! The line of Pods in front of one Corridor.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Gbps, Instant, PodUid};

use crate::queue::Order;

/// How often, and for how long after the first time, smaller Pods may pass the head.
#[derive(Clone, Copy, Debug)]
pub struct Bypass {
    pub times_max: u32,
    pub span_max: Duration,
}

impl Default for Bypass {
    fn default() -> Self {
        Self { times_max: 16, span_max: Duration::from_mins(1) }
    }
}

/// Pods that wait for bandwidth of one Corridor.
///
/// They are kept by amount and, within one amount, in order: the first Pod that fits
/// into what is free is found in as many steps as there are different amounts.
#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: BTreeMap<Gbps, BTreeMap<Order, PodUid>>,
    /// Sent to the active queue and not tried yet: their bandwidth is spoken for.
    released: BTreeMap<Order, Gbps>,
    /// Pods that more bandwidth does not help, with what does.
    aside: BTreeMap<Order, (PodUid, WakeAside)>,
    passes: BTreeMap<Order, Passes>,
}

/// What brings back a Pod that does not stand in the line itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeAside {
    /// It asks more than the whole floor.
    SpecChange,
    /// It fails fast.
    SpecChangeOrReady,
}

#[derive(Clone, Copy, Debug)]
struct Passes {
    times: u32,
    first: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub order: Order,
    pub amount: Gbps,
    pub pod: PodUid,
}

impl Line {
    pub fn join(&mut self, order: Order, amount: Gbps, pod: PodUid) {
        self.waiting.entry(amount).or_default().insert(order, pod);
    }

    pub fn stand_aside(&mut self, order: Order, pod: PodUid, wake: WakeAside) {
        self.aside.insert(order, (pod, wake));
    }

    /// Takes the Pod out of the line, wherever it stands; it may come back with its passes.
    pub fn leave(&mut self, order: Order, amount: Gbps) {
        self.aside.remove(&order);
        if let Some(pods) = self.waiting.get_mut(&amount) {
            pods.remove(&order);
            if pods.is_empty() {
                self.waiting.remove(&amount);
            }
        }
    }

    /// The Pod is placed or gone: nothing of it is remembered.
    pub fn forget(&mut self, order: Order) {
        self.passes.remove(&order);
        self.released.remove(&order);
    }

    pub fn head(&self) -> Option<Waiting> {
        first_of(self.waiting.iter())
    }

    /// The first Pod in order that asks no more than `free`.
    pub fn first_fitting(&self, free: Gbps) -> Option<Waiting> {
        first_of(self.waiting.range(..=free))
    }

    /// Who waits before `order`, first.
    pub fn head_before(&self, order: Order) -> Option<Waiting> {
        self.head().filter(|head| head.order < order)
    }

    pub fn mark_released(&mut self, waiting: &Waiting) {
        self.leave(waiting.order, waiting.amount);
        self.released.insert(waiting.order, waiting.amount);
    }

    /// The released Pod is being tried: from here its reservation speaks for itself.
    pub fn mark_tried(&mut self, order: Order) -> bool {
        self.released.remove(&order).is_some()
    }

    pub fn spoken_for(&self) -> Gbps {
        self.released.values().fold(Gbps::ZERO, |sum, amount| sum.saturating_add(*amount))
    }

    pub fn count_pass(&mut self, head: Order, now: Instant) {
        let passes = self.passes.entry(head).or_insert(Passes { times: 0, first: now });
        passes.times = passes.times.saturating_add(1);
    }

    /// Whether free bandwidth is now kept for this Pod. Released Pods behind it count
    /// as passes that are about to happen.
    pub fn has_been_passed_enough(&self, head: Order, now: Instant, bypass: Bypass) -> bool {
        let (times, since_first) = self.passes.get(&head).map_or((0, Duration::ZERO), |passes| {
            (passes.times, now.saturating_since(passes.first))
        });
        let about_to = self.released.range(head..).filter(|(_, amount)| !amount.is_zero()).count();
        let times = times.saturating_add(u32::try_from(about_to).unwrap_or(u32::MAX));
        times >= bypass.times_max || since_first >= bypass.span_max
    }

    pub fn times_passed(&self, head: Order) -> u32 {
        self.passes.get(&head).map_or(0, |passes| passes.times)
    }

    pub fn aside(&self) -> impl Iterator<Item = (&PodUid, WakeAside)> {
        self.aside.values().map(|(pod, wake)| (pod, *wake))
    }

    pub fn waiting(&self) -> impl Iterator<Item = (Order, &PodUid)> {
        self.waiting.values().flatten().map(|(order, pod)| (*order, pod))
    }

    pub fn position(&self, order: Order) -> usize {
        1 + self.waiting.values().map(|pods| pods.range(..order).count()).sum::<usize>()
    }

    pub fn len(&self) -> usize {
        self.waiting.values().map(BTreeMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        let Self { waiting, released, aside, passes } = self;
        waiting.is_empty() && released.is_empty() && aside.is_empty() && passes.is_empty()
    }
}

/// The first Pod in order among those of several amounts.
fn first_of<'a>(
    amounts: impl Iterator<Item = (&'a Gbps, &'a BTreeMap<Order, PodUid>)>,
) -> Option<Waiting> {
    amounts
        .filter_map(|(amount, pods)| {
            pods.first_key_value().map(|(order, pod)| (order, amount, pod))
        })
        .min_by_key(|(order, ..)| **order)
        .map(|(order, amount, pod)| Waiting { order: *order, amount: *amount, pod: pod.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(first_seen: u64) -> Order {
        Order::new(0, 0, first_seen)
    }

    fn line(asks: &[(u64, u32)]) -> Line {
        let mut line = Line::default();
        for (seen, gbps) in asks {
            line.join(order(*seen), Gbps::from_whole(*gbps), format!("p{seen}").as_str().into());
        }
        line
    }

    fn name(waiting: Option<Waiting>) -> Option<String> {
        waiting.map(|waiting| waiting.pod.to_string())
    }

    #[test]
    fn the_first_that_fits_may_stand_behind_the_head() {
        let line = line(&[(1, 60), (2, 40), (3, 20), (4, 40)]);
        assert_eq!(name(line.head()).as_deref(), Some("p1"));
        assert_eq!(name(line.first_fitting(Gbps::from_whole(40))).as_deref(), Some("p2"));
        assert_eq!(name(line.first_fitting(Gbps::from_whole(30))).as_deref(), Some("p3"));
        assert_eq!(name(line.first_fitting(Gbps::from_whole(10))), None);
    }

    #[test]
    fn a_head_is_passed_sixteen_times_and_not_more() {
        let mut line = line(&[(1, 60)]);
        for _ in 0..15 {
            line.count_pass(order(1), Instant::START);
        }
        assert!(!line.has_been_passed_enough(order(1), Instant::START, Bypass::default()));
        line.count_pass(order(1), Instant::START);
        assert!(line.has_been_passed_enough(order(1), Instant::START, Bypass::default()));
    }

    #[test]
    fn a_head_is_passed_for_a_minute_after_the_first_pass() {
        let mut line = line(&[(1, 60)]);
        let later = Instant::START + Duration::from_secs(100);
        line.count_pass(order(1), later);
        let soon = later + Duration::from_secs(59);
        assert!(!line.has_been_passed_enough(order(1), soon, Bypass::default()));
        let late = later + Duration::from_mins(1);
        assert!(line.has_been_passed_enough(order(1), late, Bypass::default()));
    }

    #[test]
    fn released_pods_behind_the_head_count_as_passes_to_come() {
        let mut line = line(&[(1, 60), (2, 1)]);
        let bypass = Bypass { times_max: 1, ..Bypass::default() };
        let second = line.first_fitting(Gbps::from_whole(1)).unwrap();
        line.mark_released(&second);
        assert!(line.has_been_passed_enough(order(1), Instant::START, bypass));
        assert_eq!(line.spoken_for(), Gbps::from_whole(1));
        assert!(line.mark_tried(order(2)));
        assert!(!line.has_been_passed_enough(order(1), Instant::START, bypass));
    }

    #[test]
    fn nothing_is_remembered_of_a_pod_that_is_gone() {
        let mut line = line(&[(1, 60)]);
        line.count_pass(order(1), Instant::START);
        line.leave(order(1), Gbps::from_whole(60));
        line.forget(order(1));
        assert!(line.is_empty());
    }
}
