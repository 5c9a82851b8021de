//! How long threads that wait for replies may look away. While more calls wait for one than the API server answers at
//! once, it is busy whenever the next is sent: then it is cheaper to find several replies together than to be woken for
//! each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Replies that are to be found together. With so few of all that are under way, the API server does not run dry.
const GATHERED: u32 = 2;
/// Nobody notices this.
const REST_MAX: Duration = Duration::from_millis(2);
/// The newest interval counts for one part of so many.
const SMOOTHING: u32 = 8;

/// What the driver allows; all clones say the same.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    nanoseconds: Arc<AtomicU64>,
}

impl Rest {
    /// Zero: a reply is to be seen as soon as it comes.
    pub fn allowed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    pub fn allow(&self, rest: Duration) {
        let nanoseconds = u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.store(nanoseconds, Ordering::Relaxed);
    }
}

/// How fast replies come while the API server is busy with our calls.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// When some came last, and how many there had been; none while it is not busy.
    last: Option<(Instant, u64)>,
    interval: Option<Duration>,
}

impl Replies {
    /// After each turn: how many calls have ended, ever, and whether many are under way. How long nobody has to look.
    pub fn seen(&mut self, ended: u64, are_many: bool, now: Instant) -> Duration {
        if !are_many {
            self.last = None;
            return Duration::ZERO;
        }
        match self.last {
            Some((at, before)) if ended > before => {
                let replies = u32::try_from(ended - before).unwrap_or(u32::MAX);
                let newest = now.saturating_duration_since(at) / replies;
                let known = self.interval.unwrap_or(newest);
                self.interval = Some((known * (SMOOTHING - 1) + newest) / SMOOTHING);
                self.last = Some((now, ended));
            }
            Some(_) => {}
            None => self.last = Some((now, ended)),
        }
        self.interval.map_or(Duration::ZERO, |interval| (interval * GATHERED).min(REST_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn only_while_much_is_under_way_and_the_slower_replies_come_the_longer() {
        let (mut replies, start) = (Replies::default(), Instant::now());
        assert_eq!(replies.seen(5, false, start), Duration::ZERO);
        assert_eq!(replies.seen(5, true, start), Duration::ZERO, "nothing is known yet");
        assert_eq!(replies.seen(15, true, start + MS), MS / 10 * 2);
        assert_eq!(replies.seen(15, true, start + MS * 2), MS / 10 * 2, "no reply tells nothing");
        let slower = replies.seen(16, true, start + MS * 2);
        assert!(slower > MS / 10 * 2 && slower < REST_MAX);
        assert_eq!(replies.seen(17, true, start + MS * 900), REST_MAX, "never for long");
        assert_eq!(replies.seen(18, false, start + MS * 901), Duration::ZERO);
    }

    #[test]
    fn the_time_in_between_does_not_count() {
        let (mut replies, start) = (Replies::default(), Instant::now());
        replies.seen(0, true, start);
        let rest = replies.seen(10, true, start + MS);
        replies.seen(11, false, start + MS * 2);
        assert_eq!(replies.seen(11, true, start + MS * 5000), rest);
    }

    #[test]
    fn all_who_ask_are_told_the_same() {
        let rest = Rest::default();
        let other = rest.clone();
        assert_eq!(other.allowed(), Duration::ZERO);
        rest.allow(MS);
        assert_eq!(other.allowed(), MS);
    }
}
