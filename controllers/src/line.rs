//! Who gets the next pass: a sans-IO queue with one pass at a time for each object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What a pass asks for at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Something was done and more may remain.
    Now,
    After(Duration),
    /// Back off: every failure in a row doubles the pause.
    Failed,
}

/// Objects that wait for a pass, by when they are due.
#[derive(Debug)]
pub(crate) struct Line<K> {
    entries: BTreeMap<K, Entry>,
    due: BTreeSet<(Instant, K)>,
    backoff_first: Duration,
    backoff_max: Duration,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<Instant>,
    /// Before this, a pass only looks; it does not try again what failed.
    retry_at: Option<Instant>,
    failures: u32,
    running: bool,
    /// When it was woken while a pass was running.
    woken: Option<Instant>,
}

impl<K: Ord + Clone> Line<K> {
    pub fn new(backoff_first: Duration, backoff_max: Duration) -> Self {
        Self { entries: BTreeMap::new(), due: BTreeSet::new(), backoff_first, backoff_max }
    }

    /// Something around the object changed: look at it. What failed is not tried before its time.
    pub fn wake(&mut self, key: &K, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.running {
            entry.woken = Some(now);
        } else if entry.due.is_none_or(|due| due > now) {
            self.set_due(key, Some(now));
        }
    }

    /// The wish itself changed: earlier failures say nothing about it.
    pub fn wake_anew(&mut self, key: &K, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.retry_at = None;
        entry.failures = 0;
        self.wake(key, now);
    }

    pub fn forget(&mut self, key: &K) {
        self.set_due(key, None);
        self.entries.remove(key);
    }

    /// The object that is due the longest, and whether what failed may be tried again.
    pub fn take(&mut self, now: Instant) -> Option<(K, bool)> {
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

    /// A pass ended. `chance` is in 0..1 and spreads those that failed together.
    pub fn finish(&mut self, key: &K, now: Instant, again: &Again, chance: f64) {
        // An object that was forgotten meanwhile is not resurrected.
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.running = false;
        let waits = entry.retry_at.filter(|at| *at > now);
        let mut due = match again {
            Again::Now => now,
            Again::After(pause) => {
                if waits.is_none() {
                    (entry.failures, entry.retry_at) = (0, None);
                }
                waits.unwrap_or(now + *pause).min(now + *pause)
            }
            Again::Failed => {
                let pause = pause(self.backoff_first, self.backoff_max, entry.failures, chance);
                entry.failures = entry.failures.saturating_add(1);
                entry.retry_at = Some(now + pause);
                now + pause
            }
        };
        if let Some(woken) = entry.woken.take() {
            due = due.min(woken);
        }
        self.set_due(key, Some(due));
    }

    /// Its pass does not take place now. It counts neither as a success nor as a failure.
    pub fn put_off(&mut self, key: &K, until: Instant) {
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

/// `first × 2^failures` up to `max`, of which a random half is taken off.
pub(crate) fn pause(first: Duration, max: Duration, failures: u32, chance: f64) -> Duration {
    /// 2^20 times any first pause is beyond any longest one.
    const DOUBLINGS_MAX: u32 = 20;
    let whole = first.saturating_mul(1 << failures.min(DOUBLINGS_MAX)).min(max);
    whole.mul_f64(1.0 - 0.5 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn line() -> Line<&'static str> {
        Line::new(SECOND, 8 * SECOND)
    }

    #[test]
    fn an_object_has_one_pass_at_a_time_and_a_wake_up_meanwhile_is_not_lost() {
        let (mut line, now) = (line(), Instant::now());
        line.wake(&"a", now);
        assert_eq!(line.take(now), Some(("a", true)));
        line.wake(&"a", now);
        assert_eq!(line.take(now), None, "its pass is running");
        line.finish(&"a", now, &Again::After(60 * SECOND), 0.0);
        assert_eq!(line.take(now), Some(("a", true)));
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_with_success() {
        let (mut line, mut now) = (line(), Instant::now());
        line.wake(&"a", now);
        for seconds in [1, 2, 4, 8, 8] {
            assert_eq!(line.take(now), Some(("a", true)));
            line.finish(&"a", now, &Again::Failed, 0.0);
            assert_eq!(line.next_due(), Some(now + seconds * SECOND));
            now += seconds * SECOND;
        }
        line.take(now);
        line.finish(&"a", now, &Again::After(60 * SECOND), 0.0);
        now += 60 * SECOND;
        line.take(now);
        line.finish(&"a", now, &Again::Failed, 0.0);
        assert_eq!(line.next_due(), Some(now + SECOND));
    }

    #[test]
    fn a_wake_up_does_not_shorten_a_pause_but_a_new_wish_does() {
        let (mut line, now) = (line(), Instant::now());
        line.wake(&"a", now);
        line.take(now);
        line.finish(&"a", now, &Again::Failed, 0.0);
        line.wake(&"a", now);
        assert_eq!(line.take(now), Some(("a", false)), "may look, not try");
        line.finish(&"a", now, &Again::After(60 * SECOND), 0.0);
        assert_eq!(line.next_due(), Some(now + SECOND), "the pause goes on");
        line.wake_anew(&"a", now);
        assert_eq!(line.take(now), Some(("a", true)));
    }

    #[test]
    fn a_forgotten_object_stays_forgotten() {
        let (mut line, now) = (line(), Instant::now());
        line.wake(&"a", now);
        line.take(now);
        line.forget(&"a");
        line.finish(&"a", now, &Again::Now, 0.0);
        assert_eq!(line.next_due(), None);
    }

    #[test]
    fn jitter_takes_off_at_most_half() {
        assert_eq!(pause(SECOND, 8 * SECOND, 2, 0.0), 4 * SECOND);
        assert_eq!(pause(SECOND, 8 * SECOND, 2, 1.0), 2 * SECOND);
        assert_eq!(pause(SECOND, 8 * SECOND, 4_000, 0.0), 8 * SECOND);
    }

    #[test]
    fn what_is_put_off_is_due_later_and_has_neither_failed_nor_succeeded() {
        let (mut line, now) = (line(), Instant::now());
        line.wake(&"a", now);
        line.take(now);
        line.finish(&"a", now, &Again::Failed, 0.0);
        let later = now + SECOND;
        assert_eq!(line.take(later), Some(("a", true)));
        line.put_off(&"a", later + SECOND);
        assert_eq!(line.take(later), None);
        assert_eq!(line.take(later + SECOND), Some(("a", true)));
        line.finish(&"a", later + SECOND, &Again::Failed, 0.0);
        assert_eq!(line.next_due(), Some(later + 3 * SECOND), "the second failure in a row");
    }
}
