//! How many Bindings one namespace may have without an outcome.
//!
//! A Binding is answered by whatever admission the Pod's namespace is subject to. A webhook that is slow or down for
//! one tenant must not take the bind slots of the others, nor reserve room for many Pods that it will not let start.
//! So a namespace whose Bindings fail, or take much longer than those of the others, may have only a few of them under
//! way; its other Pods wait here, in order, and are tried when one of those has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{Instant, PodUid};

use super::Order;

/// What a namespace may have under way at most. Each holds a seat in the API server (API Priority and
/// Fairness) until its webhooks have answered, and of those this scheduler's level has 49 at the least: when webhooks
/// that were quick turn slow, the other namespaces need some. It is enough for 1,000 Bindings a second of 40 ms.
const OPEN_MAX: usize = 40;
/// What a namespace may have under way of which nothing is known yet. Each that is bound is one more, so that a webhook
/// that turns out to be slow has not taken every seat that the API server has for this scheduler.
const OPEN_START: usize = 24;
/// What it may have under way at least: one that succeeds shows that the fault has passed.
const OPEN_MIN: usize = 2;
/// An API server that is as busy as it can be answers 64 Bindings at once within this time.
const BUSY_LATENCY: Duration = Duration::from_millis(100);
/// Twice as slow as the others is noise.
const SLOW_RATIO: u32 = 2;
/// What is older says nothing about now.
const LATENCY_VALID_FOR: Duration = Duration::from_mins(1);
/// One Binding in 8 weighs: the last few count, one alone does not.
const SMOOTHING: u32 = 8;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NamespaceThrottle {
    namespaces: BTreeMap<Arc<str>, Namespace>,
    /// The sum of [`Namespace::rate`]: so the mean of the others is found without a look at each.
    rates: u64,
    /// How many namespaces that is the sum of.
    rated: u64,
    /// Pods that wait, of all namespaces.
    waiting: usize,
    swept_at: Instant,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Namespace {
    /// What it may have under way by what was bound so far.
    window: usize,
    /// Pods whose Bindings have no outcome yet, the oldest first.
    open: Vec<(Instant, PodUid)>,
    /// From decision to outcome, smoothed; zero if there was none yet.
    latency: Duration,
    measured_at: Instant,
    /// The last answer was none: the API server, or what it asks, failed.
    is_failing: bool,
    /// Pods that wait until one of the open ones has ended.
    #[serde(with = "model::pairs")]
    waiting: BTreeMap<Order, PodUid>,
}

impl Default for Namespace {
    fn default() -> Self {
        Self {
            window: OPEN_START,
            open: Vec::new(),
            latency: Duration::ZERO,
            measured_at: Instant::START,
            is_failing: false,
            waiting: BTreeMap::new(),
        }
    }
}

/// Bindings per million seconds. An integer, so that what was added can be taken away again.
fn rate(latency: Duration) -> u64 {
    let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    1_000_000_000_000_000_u64.checked_div(nanos).unwrap_or_default()
}

impl Namespace {
    /// How long its Bindings take, as far as is known now.
    fn latency(&self, now: Instant) -> Duration {
        let oldest = self.open.first().map(|(began, _)| now.saturating_since(*began));
        self.latency.max(oldest.unwrap_or_default())
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.open.is_empty()
            && self.waiting.is_empty()
            && now.saturating_since(self.measured_at) > LATENCY_VALID_FOR
    }
}

impl NamespaceThrottle {
    pub fn begin(&mut self, namespace: &Arc<str>, pod: &PodUid, now: Instant) {
        self.sweep(now);
        if !self.namespaces.contains_key(namespace) {
            self.namespaces.insert(namespace.clone(), Namespace::default());
        }
        if let Some(it) = self.namespaces.get_mut(namespace) {
            it.open.push((now, pod.clone()));
        }
    }

    /// The outcome of this Binding is not clear yet.
    pub fn fail(&mut self, namespace: &str) {
        if let Some(it) = self.namespaces.get_mut(namespace) {
            it.is_failing = true;
        }
    }

    pub fn end(&mut self, namespace: &str, pod: &PodUid, is_bound: bool, now: Instant) {
        let Some(it) = self.namespaces.get_mut(namespace) else { return };
        let Some(at) = it.open.iter().position(|(_, open)| open == pod) else { return };
        let took = now.saturating_since(it.open.remove(at).0);
        it.is_failing &= !is_bound;
        it.window = OPEN_MAX.min(it.window + usize::from(is_bound));
        let before = rate(it.latency);
        it.latency = if it.latency.is_zero() {
            took
        } else {
            (it.latency * (SMOOTHING - 1) + took) / SMOOTHING
        };
        it.measured_at = now;
        let after = rate(it.latency);
        self.rates = self.rates - before + after;
        self.rated = self.rated + u64::from(after > 0) - u64::from(before > 0);
    }

    /// Whether a Pod of this namespace has to wait until one of its Bindings has ended.
    pub fn is_full(&self, namespace: &str, now: Instant) -> bool {
        let Some(it) = self.namespaces.get(namespace) else { return false };
        it.open.len() >= OPEN_MIN && it.open.len() >= self.open_max(it, now)
    }

    fn open_max(&self, of: &Namespace, now: Instant) -> usize {
        if of.is_failing {
            return OPEN_MIN;
        }
        let latency = of.latency(now);
        let Some(normal) = self.latency_beside(of) else { return of.window };
        let normal = normal.max(BUSY_LATENCY);
        if latency <= normal * SLOW_RATIO {
            return of.window;
        }
        let share = normal.as_nanos() * OPEN_MAX as u128 / latency.as_nanos();
        usize::try_from(share).unwrap_or(OPEN_MAX).clamp(OPEN_MIN, of.window)
    }

    /// How long Bindings of the other namespaces take: the mean of their rates, so that several slow ones do not make
    /// slowness normal.
    fn latency_beside(&self, of: &Namespace) -> Option<Duration> {
        let own = rate(of.latency);
        let (rates, count) = (self.rates - own, self.rated - u64::from(own > 0));
        let mean = rates.checked_div(count).filter(|mean| *mean > 0)?;
        Some(Duration::from_nanos(1_000_000_000_000_000 / mean))
    }

    pub fn wait(&mut self, namespace: &str, order: Order, pod: &PodUid) {
        if let Some(it) = self.namespaces.get_mut(namespace) {
            it.waiting.insert(order, pod.clone());
            self.waiting += 1;
        }
    }

    pub fn leave(&mut self, namespace: &str, order: Order) {
        if let Some(it) = self.namespaces.get_mut(namespace)
            && it.waiting.remove(&order).is_some()
        {
            self.waiting -= 1;
        }
    }

    /// The first Pods of the namespace that need not wait any more.
    pub fn free(&self, namespace: &str, now: Instant) -> Vec<PodUid> {
        let Some(it) = self.namespaces.get(namespace).filter(|it| !it.waiting.is_empty()) else {
            return Vec::new();
        };
        let places = self.open_max(it, now).max(OPEN_MIN).saturating_sub(it.open.len());
        it.waiting.values().take(places).cloned().collect()
    }

    /// Namespaces with Pods that wait here.
    pub fn crowded(&self) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces.iter().filter(|(_, it)| !it.waiting.is_empty()).map(|(name, _)| name)
    }

    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// How many Bindings of the namespace have no outcome.
    pub fn open(&self, namespace: &str) -> usize {
        self.namespaces.get(namespace).map_or(0, |it| it.open.len())
    }

    /// What is known of namespaces, without their Pods.
    pub fn without_pods(mut self) -> Self {
        for it in self.namespaces.values_mut() {
            it.open.clear();
            it.waiting.clear();
        }
        self.waiting = 0;
        self
    }

    /// Forgets namespaces of which nothing was heard for long.
    fn sweep(&mut self, now: Instant) {
        if now.saturating_since(self.swept_at) <= LATENCY_VALID_FOR {
            return;
        }
        self.swept_at = now;
        self.namespaces.retain(|_, it| !it.is_idle(now));
        let known = self.namespaces.values().map(|it| rate(it.latency));
        (self.rates, self.rated) =
            known.fold((0, 0), |(sum, count), rate| (sum + rate, count + u64::from(rate > 0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        throttle: NamespaceThrottle,
        now: Instant,
        pods: u32,
    }

    impl Scene {
        fn new() -> Self {
            let now = Instant::START + Duration::from_secs(100);
            Self { throttle: NamespaceThrottle::default(), now, pods: 0 }
        }

        fn begin(&mut self, namespace: &str) -> PodUid {
            self.pods += 1;
            let pod = PodUid::new(&format!("p{}", self.pods));
            self.throttle.begin(&namespace.into(), &pod, self.now);
            pod
        }

        fn pass(&mut self, millis: u64) {
            self.now = self.now + Duration::from_millis(millis);
        }

        fn bind(&mut self, namespace: &str, takes_millis: u64) {
            let pod = self.begin(namespace);
            self.pass(takes_millis);
            self.throttle.end(namespace, &pod, true, self.now);
        }

        /// As often as it takes to be known.
        fn bind_often(&mut self, namespace: &str, takes_millis: u64) {
            for _ in OPEN_START..OPEN_MAX {
                self.bind(namespace, takes_millis);
            }
        }

        /// How many can be begun at once.
        fn fills_at(&mut self, namespace: &str) -> usize {
            let mut begun = 0;
            while begun < 1000 && !self.throttle.is_full(namespace, self.now) {
                self.begin(namespace);
                begun += 1;
            }
            begun
        }
    }

    #[test]
    fn a_namespace_that_is_answered_quickly_leaves_some_seats_to_the_others() {
        let mut scene = Scene::new();
        assert_eq!(Scene::new().fills_at("a"), OPEN_START, "nothing is known of it");
        scene.bind_often("a", 60);
        assert_eq!(scene.fills_at("a"), OPEN_MAX);
    }

    #[test]
    fn a_namespace_that_is_slow_beside_others_gets_as_much_less_as_it_is_slower() {
        let mut scene = Scene::new();
        scene.bind("quick", 20);
        scene.bind("slow", 1_000);
        assert_eq!(scene.fills_at("slow"), 4, "a tenth of 40");
        let mut scene = Scene::new();
        scene.bind_often("quick", 20);
        scene.bind("other", 3_000);
        scene.bind("slow", 3_000);
        assert_eq!(scene.fills_at("slow"), OPEN_MIN, "another slow one makes it no better");
        assert_eq!(scene.fills_at("quick"), OPEN_MAX);
    }

    #[test]
    fn what_is_slow_for_all_throttles_no_namespace() {
        let mut scene = Scene::new();
        for namespace in ["a", "b", "c"] {
            scene.bind_often(namespace, 800);
        }
        assert_eq!(scene.fills_at("a"), OPEN_MAX);
        let mut alone = Scene::new();
        alone.bind_often("a", 800);
        assert_eq!(alone.fills_at("a"), OPEN_MAX, "there is no other to compare it with");
    }

    #[test]
    fn it_is_known_to_be_slow_before_it_has_answered() {
        let mut scene = Scene::new();
        scene.bind("quick", 20);
        scene.begin("slow");
        scene.pass(2_000);
        assert_eq!(scene.fills_at("slow"), 1, "two with the one that is under way");
    }

    #[test]
    fn one_that_fails_may_try_two_at_a_time_until_one_succeeds() {
        let mut scene = Scene::new();
        let pod = scene.begin("a");
        scene.throttle.fail("a");
        scene.throttle.end("a", &pod, false, scene.now);
        assert_eq!(scene.fills_at("a"), 2);
        let order = |number| Order::new(0, 0, number);
        for number in [8, 7] {
            scene.throttle.wait("a", order(number), &PodUid::new(&format!("w{number}")));
        }
        assert_eq!(scene.throttle.free("a", scene.now), []);
        scene.throttle.end("a", &PodUid::new("p2"), false, scene.now);
        assert_eq!(scene.throttle.free("a", scene.now), ["w7".into()]);
        scene.throttle.end("a", &PodUid::new("p3"), true, scene.now);
        assert_eq!(scene.throttle.free("a", scene.now), ["w7".into(), "w8".into()]);
        scene.throttle.leave("a", order(7));
        scene.throttle.leave("a", order(8));
        assert!(!scene.throttle.has_waiting());
    }

    #[test]
    fn what_has_not_been_heard_of_for_a_minute_is_forgotten() {
        let mut scene = Scene::new();
        scene.bind("quick", 20);
        scene.bind("a", 3_000);
        scene.pass(120_000);
        assert_eq!(scene.fills_at("a"), OPEN_START);
        assert_eq!(scene.throttle.namespaces.len(), 1);
    }
}
