//! The queue of Pods that wait for bandwidth of one Corridor or MemoryBundle.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{Amount, Instant, PodUid};

use super::Order;

/// How often, and for how long after the first time, smaller Pods may pass the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bypass {
    pub times_max: u32,
    pub span_max: Duration,
}

impl Default for Bypass {
    fn default() -> Self {
        Self { times_max: 16, span_max: Duration::from_mins(1) }
    }
}

/// Pods that wait for bandwidth of one object.
///
/// Positions are not written to a snapshot: each Pod's record has its own.
///
/// They are kept by namespace and amount and, within those, in order: the first Pod that fits into
/// what is free is found in as many steps as there are namespaces and different amounts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BandwidthQueue {
    #[serde(skip)]
    waiting: BTreeMap<Arc<str>, ByAmount>,
    /// Sent to the active queue and not tried yet: their bandwidth is allotted to them.
    #[serde(with = "model::pairs")]
    released: BTreeMap<Order, Amount>,
    /// The sum of `released`.
    spoken_for: Amount,
    /// Pods that more bandwidth does not help, with what unblocks them.
    #[serde(skip)]
    blocked: BTreeMap<Order, (PodUid, UnblockOn)>,
    #[serde(with = "model::pairs")]
    passes: BTreeMap<Order, Passes>,
}

type ByAmount = BTreeMap<Amount, BTreeMap<Order, PodUid>>;

/// A Pod's rank in a queue: namespaces over their soft quota after the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub over_quota: bool,
    pub order: Order,
}

/// Whether a namespace has more of the object than its soft quota.
pub(crate) type OverQuota<'a> = &'a dyn Fn(&str) -> bool;

/// What unblocks a Pod that more bandwidth does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnblockOn {
    /// It asks more than the whole floor.
    SpecChange,
    /// It fails fast. Ready is what the object is for scheduling: it promises its floor.
    SpecChangeOrReady,
    /// Its namespace may not use the object.
    PolicyChange,
    /// Its namespace belongs to another security domain than the object.
    DomainChange,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Passes {
    times: u32,
    first: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub rank: Rank,
    pub namespace: Arc<str>,
    pub amount: Amount,
    pub pod: PodUid,
}

/// The position that a walk through a queue has reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueuePosition {
    pub namespace: Arc<str>,
    pub amount: Amount,
    pub order: Order,
}

impl BandwidthQueue {
    /// The next Pods after a place, in the order in which they are kept.
    pub fn waiting_after(
        &self,
        after: Option<&QueuePosition>,
        max: usize,
    ) -> Vec<(QueuePosition, PodUid)> {
        let from = after.map_or(Unbounded, |place| Included(&*place.namespace));
        let namespaces = self.waiting.range::<str, _>((from, Unbounded));
        let pods = namespaces.flat_map(|(namespace, by_amount)| {
            let after = after.filter(|place| place.namespace == *namespace);
            let from = after.map_or(Amount::ZERO, |place| place.amount);
            by_amount.range(from..).flat_map(move |(amount, pods)| {
                let after = after.filter(|place| place.amount == *amount);
                let from = after.map_or(Unbounded, |place| Excluded(place.order));
                pods.range((from, Unbounded)).map(move |(order, pod)| {
                    let (namespace, amount) = (namespace.clone(), *amount);
                    (QueuePosition { namespace, amount, order: *order }, pod.clone())
                })
            })
        });
        pods.take(max).collect()
    }

    pub fn join(&mut self, namespace: &Arc<str>, order: Order, amount: Amount, pod: PodUid) {
        let by_amount = self.waiting.entry(namespace.clone()).or_default();
        by_amount.entry(amount).or_default().insert(order, pod);
    }

    pub fn block(&mut self, order: Order, pod: PodUid, wake: UnblockOn) {
        self.blocked.insert(order, (pod, wake));
    }

    /// Takes the Pod out of the queue, wherever it stands; it may come back with its passes.
    pub fn leave(&mut self, namespace: &str, order: Order, amount: Amount) {
        self.blocked.remove(&order);
        let Some(by_amount) = self.waiting.get_mut(namespace) else { return };
        if let Some(pods) = by_amount.get_mut(&amount) {
            pods.remove(&order);
            if pods.is_empty() {
                by_amount.remove(&amount);
            }
        }
        if by_amount.is_empty() {
            self.waiting.remove(namespace);
        }
    }

    /// The Pod is placed or gone: nothing of it is remembered.
    pub fn forget(&mut self, order: Order) {
        self.passes.remove(&order);
        self.mark_tried(order);
    }

    pub fn head(&self, over_quota: OverQuota<'_>) -> Option<Waiting> {
        self.first_fitting(Amount::MAX, over_quota)
    }

    /// The first Pod in order that asks no more than `free`.
    pub fn first_fitting(&self, free: Amount, over_quota: OverQuota<'_>) -> Option<Waiting> {
        self.first_that(free, over_quota, &|_, _| true)
    }

    /// The first Pod in order that asks no more than `free` and that `fits`, which must hold for every Pod of a higher
    /// priority and the same amount if it holds for one.
    pub fn first_that(
        &self,
        free: Amount,
        over_quota: OverQuota<'_>,
        fits: &dyn Fn(Order, Amount) -> bool,
    ) -> Option<Waiting> {
        let firsts = self.waiting.iter().flat_map(|(namespace, by_amount)| {
            let over_quota = over_quota(namespace);
            by_amount.range(..=free).filter_map(move |(amount, pods)| {
                let (order, pod) = pods.first_key_value().filter(|(it, _)| fits(**it, *amount))?;
                Some((Rank { over_quota, order: *order }, namespace, amount, pod))
            })
        });
        firsts.min_by_key(|(rank, ..)| *rank).map(|(rank, namespace, amount, pod)| Waiting {
            rank,
            namespace: namespace.clone(),
            amount: *amount,
            pod: pod.clone(),
        })
    }

    /// The head of the queue, if it is before `rank`.
    pub fn head_before(&self, rank: Rank, over_quota: OverQuota<'_>) -> Option<Waiting> {
        self.head(over_quota).filter(|head| head.rank < rank)
    }

    pub fn mark_released(&mut self, waiting: &Waiting) {
        self.leave(&waiting.namespace, waiting.rank.order, waiting.amount);
        self.released.insert(waiting.rank.order, waiting.amount);
        self.spoken_for = self.spoken_for.saturating_add(waiting.amount);
    }

    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// The released Pod is being tried: from here its reservation counts instead.
    pub fn mark_tried(&mut self, order: Order) -> bool {
        let Some(amount) = self.released.remove(&order) else { return false };
        self.spoken_for = self.spoken_for.saturating_sub(amount);
        true
    }

    pub fn spoken_for(&self) -> Amount {
        self.spoken_for
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

    pub fn blocked(&self) -> impl Iterator<Item = (&PodUid, UnblockOn)> {
        self.blocked.values().map(|(pod, wake)| (pod, *wake))
    }

    pub fn waiting(&self) -> impl Iterator<Item = (Order, &PodUid)> {
        self.waiting.values().flat_map(BTreeMap::values).flatten().map(|(order, pod)| (*order, pod))
    }

    /// The position of this Pod, counted from 1.
    pub fn position(&self, rank: Rank, over_quota: OverQuota<'_>) -> usize {
        let before = |(namespace, by_amount): (&Arc<str>, &ByAmount)| -> usize {
            match over_quota(namespace).cmp(&rank.over_quota) {
                Ordering::Less => by_amount.values().map(BTreeMap::len).sum(),
                Ordering::Equal => {
                    by_amount.values().map(|pods| pods.range(..rank.order).count()).sum()
                }
                Ordering::Greater => 0,
            }
        };
        1 + self.waiting.iter().map(before).sum::<usize>()
    }

    pub fn len(&self) -> usize {
        self.waiting.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        let Self { waiting, released, spoken_for: _, blocked, passes } = self;
        waiting.is_empty() && released.is_empty() && blocked.is_empty() && passes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(first_seen: u64) -> Order {
        Order::new(0, 0, first_seen)
    }

    fn queue(asks: &[(u64, u32)]) -> BandwidthQueue {
        let mut queue = BandwidthQueue::default();
        for (seen, gbps) in asks {
            let pod = format!("p{seen}").as_str().into();
            queue.join(&"team-a".into(), order(*seen), Amount::from_whole(*gbps), pod);
        }
        queue
    }

    fn name(waiting: Option<Waiting>) -> Option<String> {
        waiting.map(|waiting| waiting.pod.to_string())
    }

    #[test]
    fn the_first_that_fits_may_stand_behind_the_head() {
        let queue = queue(&[(1, 60), (2, 40), (3, 20), (4, 40)]);
        assert_eq!(name(queue.head(&|_| false)).as_deref(), Some("p1"));
        assert_eq!(
            name(queue.first_fitting(Amount::from_whole(40), &|_| false)).as_deref(),
            Some("p2")
        );
        assert_eq!(
            name(queue.first_fitting(Amount::from_whole(30), &|_| false)).as_deref(),
            Some("p3")
        );
        assert_eq!(name(queue.first_fitting(Amount::from_whole(10), &|_| false)), None);
    }

    #[test]
    fn a_queue_is_walked_in_steps_without_missing_a_pod() {
        let mut queue = BandwidthQueue::default();
        for number in 0..20 {
            let namespace = ["a", "b", "c"][number % 3].into();
            let amount = Amount::from_whole(u32::try_from(number % 4).unwrap());
            queue.join(&namespace, order(number as u64), amount, PodUid::new(&number.to_string()));
        }
        let all: Vec<PodUid> = queue.waiting().map(|(_, pod)| pod.clone()).collect();
        for step in [1, 3, 7, 100] {
            let (mut walked, mut after) = (Vec::new(), None);
            loop {
                let next = queue.waiting_after(after.as_ref(), step);
                let Some((place, _)) = next.last() else { break };
                after = Some(place.clone());
                walked.extend(next.into_iter().map(|(_, pod)| pod));
            }
            assert_eq!(walked, all, "in steps of {step}");
        }
    }

    #[test]
    fn namespaces_over_their_quota_stand_behind_the_others() {
        let mut queue = queue(&[(1, 10), (2, 10)]);
        queue.join(&"team-b".into(), order(3), Amount::from_whole(10), "q".into());
        let over = |namespace: &str| namespace == "team-a";
        assert_eq!(name(queue.head(&over)).as_deref(), Some("q"));
        let last = Rank { over_quota: true, order: order(2) };
        assert_eq!(queue.position(last, &over), 3);
        assert_eq!(queue.position(Rank { over_quota: false, ..last }, &|_| false), 2);
    }

    #[test]
    fn a_head_is_passed_sixteen_times_and_not_more() {
        let mut queue = queue(&[(1, 60)]);
        for _ in 0..15 {
            queue.count_pass(order(1), Instant::START);
        }
        assert!(!queue.has_been_passed_enough(order(1), Instant::START, Bypass::default()));
        queue.count_pass(order(1), Instant::START);
        assert!(queue.has_been_passed_enough(order(1), Instant::START, Bypass::default()));
    }

    #[test]
    fn a_head_is_passed_for_a_minute_after_the_first_pass() {
        let mut queue = queue(&[(1, 60)]);
        let later = Instant::START + Duration::from_secs(100);
        queue.count_pass(order(1), later);
        let soon = later + Duration::from_secs(59);
        assert!(!queue.has_been_passed_enough(order(1), soon, Bypass::default()));
        let late = later + Duration::from_mins(1);
        assert!(queue.has_been_passed_enough(order(1), late, Bypass::default()));
    }

    #[test]
    fn released_pods_behind_the_head_count_as_passes_to_come() {
        let mut queue = queue(&[(1, 60), (2, 1)]);
        let bypass = Bypass { times_max: 1, ..Bypass::default() };
        let second = queue.first_fitting(Amount::from_whole(1), &|_| false).unwrap();
        queue.mark_released(&second);
        assert!(queue.has_been_passed_enough(order(1), Instant::START, bypass));
        assert_eq!(queue.spoken_for(), Amount::from_whole(1));
        assert!(queue.mark_tried(order(2)));
        assert!(!queue.has_been_passed_enough(order(1), Instant::START, bypass));
    }

    #[test]
    fn nothing_is_remembered_of_a_pod_that_is_gone() {
        let mut queue = queue(&[(1, 60)]);
        queue.count_pass(order(1), Instant::START);
        queue.leave("team-a", order(1), Amount::from_whole(60));
        queue.forget(order(1));
        assert!(queue.is_empty());
    }
}
