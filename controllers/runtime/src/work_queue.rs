//! Which object is reconciled next: a sans-IO queue with one reconcile at a time for each object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// When a reconcile asks to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// An operation was carried out and more may remain.
    Now,
    After(Duration),
    /// Each failure in a row doubles the delay.
    WithBackoff,
}

/// Objects that wait for a reconcile, by when they are due.
#[derive(Debug)]
pub(crate) struct WorkQueue<K> {
    entries: BTreeMap<K, Entry>,
    due: BTreeSet<(Instant, K)>,
    backoff: Backoff,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<Instant>,
    /// A reconcile before this time observes and reports, and does not retry the operation that failed.
    retry_at: Option<Instant>,
    failures: u32,
    running: bool,
    /// When the object was woken while its reconcile was running.
    woken: Option<Instant>,
}

impl<K: Ord + Clone> WorkQueue<K> {
    pub fn new(backoff: Backoff) -> Self {
        Self { entries: BTreeMap::new(), due: BTreeSet::new(), backoff }
    }

    /// Something around the object changed. A failed operation is still not retried before its time.
    pub fn wake(&mut self, key: &K, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.running {
            entry.woken = Some(now);
        } else if entry.due.is_none_or(|due| due > now) {
            self.set_due(key, Some(now));
        }
    }

    /// The spec changed: earlier failures say nothing about the new one.
    pub fn wake_and_reset(&mut self, key: &K, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.retry_at = None;
        entry.failures = 0;
        self.wake(key, now);
    }

    pub fn remove(&mut self, key: &K) {
        self.set_due(key, None);
        self.entries.remove(key);
    }

    /// The object that has been due the longest, and whether a failed operation may be retried.
    pub fn pop(&mut self, now: Instant) -> Option<(K, bool)> {
        let (due, key) = self.due.first()?.clone();
        if due > now {
            return None;
        }
        self.set_due(&key, None);
        let entry = self.entries.get_mut(&key)?;
        entry.running = true;
        let may_retry = entry.retry_at.is_none_or(|at| at <= now);
        Some((key, may_retry))
    }

    /// A reconcile ended. `jitter` is in 0..1 and spreads objects that failed together.
    pub fn done(&mut self, key: &K, now: Instant, requeue: &Requeue, jitter: f64) {
        // An object that was removed meanwhile stays removed.
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.running = false;
        let waits = entry.retry_at.filter(|at| *at > now);
        let mut due = match requeue {
            Requeue::Now => now,
            Requeue::After(delay) => {
                if waits.is_none() {
                    (entry.failures, entry.retry_at) = (0, None);
                }
                waits.unwrap_or(now + *delay).min(now + *delay)
            }
            Requeue::WithBackoff => {
                let delay = self.backoff.delay(entry.failures, jitter);
                entry.failures = entry.failures.saturating_add(1);
                entry.retry_at = Some(now + delay);
                now + delay
            }
        };
        if let Some(woken) = entry.woken.take() {
            due = due.min(woken);
        }
        self.set_due(key, Some(due));
    }

    /// The reconcile does not take place now, which counts neither as a success nor as a failure.
    pub fn postpone(&mut self, key: &K, until: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.running = false;
        entry.woken = None;
        self.set_due(key, Some(until));
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    fn set_due(&mut self, key: &K, due: Option<Instant>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(old) = entry.due.take() {
            self.due.remove(&(old, key.clone()));
        }
        if let Some(due) = due {
            entry.due = Some(due);
            self.due.insert((due, key.clone()));
        }
    }
}

/// Delays after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
}

impl Backoff {
    /// `first × 2^failures` up to `max`, less a random part of at most half.
    pub fn delay(self, failures: u32, jitter: f64) -> Duration {
        /// 2^20 times any first delay is beyond any longest one.
        const DOUBLINGS_MAX: u32 = 20;
        let whole = self.first.saturating_mul(1 << failures.min(DOUBLINGS_MAX)).min(self.max);
        whole.mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
    }
}

/// A random number in 0..1, to spread what would happen together. 0.5 without the system's randomness.
pub fn jitter() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const BACKOFF: Backoff = Backoff { first: SECOND, max: Duration::from_secs(8) };

    fn queue() -> WorkQueue<&'static str> {
        WorkQueue::new(BACKOFF)
    }

    #[test]
    fn an_object_has_one_reconcile_at_a_time_and_a_wake_up_meanwhile_is_not_lost() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.wake(&"a", now);
        assert_eq!(queue.pop(now), Some(("a", true)));
        queue.wake(&"a", now);
        assert_eq!(queue.pop(now), None, "its reconcile is running");
        queue.done(&"a", now, &Requeue::After(60 * SECOND), 0.0);
        assert_eq!(queue.pop(now), Some(("a", true)));
    }

    #[test]
    fn delays_double_up_to_the_longest_and_end_with_success() {
        let (mut queue, mut now) = (queue(), Instant::now());
        queue.wake(&"a", now);
        for seconds in [1, 2, 4, 8, 8] {
            assert_eq!(queue.pop(now), Some(("a", true)));
            queue.done(&"a", now, &Requeue::WithBackoff, 0.0);
            assert_eq!(queue.next_due(), Some(now + seconds * SECOND));
            now += seconds * SECOND;
        }
        queue.pop(now);
        queue.done(&"a", now, &Requeue::After(60 * SECOND), 0.0);
        now += 60 * SECOND;
        queue.pop(now);
        queue.done(&"a", now, &Requeue::WithBackoff, 0.0);
        assert_eq!(queue.next_due(), Some(now + SECOND));
    }

    #[test]
    fn a_wake_up_does_not_shorten_a_delay_but_a_new_spec_does() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.wake(&"a", now);
        queue.pop(now);
        queue.done(&"a", now, &Requeue::WithBackoff, 0.0);
        queue.wake(&"a", now);
        assert_eq!(queue.pop(now), Some(("a", false)), "may observe, not retry");
        queue.done(&"a", now, &Requeue::After(60 * SECOND), 0.0);
        assert_eq!(queue.next_due(), Some(now + SECOND), "the delay goes on");
        queue.wake_and_reset(&"a", now);
        assert_eq!(queue.pop(now), Some(("a", true)));
    }

    #[test]
    fn a_removed_object_stays_removed() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.wake(&"a", now);
        queue.pop(now);
        queue.remove(&"a");
        queue.done(&"a", now, &Requeue::Now, 0.0);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn jitter_takes_off_at_most_half() {
        assert_eq!(BACKOFF.delay(2, 0.0), 4 * SECOND);
        assert_eq!(BACKOFF.delay(2, 1.0), 2 * SECOND);
        assert_eq!(BACKOFF.delay(4_000, 0.0), 8 * SECOND);
    }

    #[test]
    fn a_postponed_object_is_due_later_and_has_neither_failed_nor_succeeded() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.wake(&"a", now);
        queue.pop(now);
        queue.done(&"a", now, &Requeue::WithBackoff, 0.0);
        let later = now + SECOND;
        assert_eq!(queue.pop(later), Some(("a", true)));
        queue.postpone(&"a", later + SECOND);
        assert_eq!(queue.pop(later), None);
        assert_eq!(queue.pop(later + SECOND), Some(("a", true)));
        queue.done(&"a", later + SECOND, &Requeue::WithBackoff, 0.0);
        assert_eq!(queue.next_due(), Some(later + 3 * SECOND), "the second failure in a row");
    }
}
