//! How long threads that wait for replies may sleep, so that several replies are handled per wake-up. While more calls are
//! in flight than the API server answers at once, it is busy anyway, and a wake-up for each reply costs CPU for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Replies to handle per wake-up. That is few of those in flight, so the API server does not run dry.
const REPLIES_COALESCED: u32 = 2;
/// Not noticeable beside the latency of a Binding.
const PAUSE_MAX: Duration = Duration::from_millis(2);
/// The newest interval counts for one part of so many.
const SMOOTHING: u32 = 8;

/// The pause that the driver allows; all clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReplyCoalescing {
    nanoseconds: Arc<AtomicU64>,
}

impl ReplyCoalescing {
    /// Zero: a reply is to be seen as soon as it comes.
    pub fn allowed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    pub fn allow(&self, pause: Duration) {
        let nanoseconds = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.store(nanoseconds, Ordering::Relaxed);
    }
}

/// How fast replies come while the API server is busy with our calls.
#[derive(Debug, Default)]
pub(crate) struct ReplyRate {
    /// When some came last, and how many there had been; none while it is not busy.
    last: Option<(Instant, u64)>,
    interval: Option<Duration>,
}

impl ReplyRate {
    /// After each turn: how many calls have ended, ever, and whether many are under way. Returns how long to sleep.
    pub fn seen(&mut self, ended: u64, are_many: bool, now: Instant) -> Duration {
        if !are_many {
            self.last = None;
            return Duration::ZERO;
        }
        match self.last {
            Some((at, before)) if ended > before => {
                let reply_rate = u32::try_from(ended - before).unwrap_or(u32::MAX);
                let newest = now.saturating_duration_since(at) / reply_rate;
                let known = self.interval.unwrap_or(newest);
                self.interval = Some((known * (SMOOTHING - 1) + newest) / SMOOTHING);
                self.last = Some((now, ended));
            }
            Some(_) => {}
            None => self.last = Some((now, ended)),
        }
        self.interval
            .map_or(Duration::ZERO, |interval| (interval * REPLIES_COALESCED).min(PAUSE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn only_while_much_is_under_way_and_the_slower_replies_come_the_longer() {
        let (mut reply_rate, start) = (ReplyRate::default(), Instant::now());
        assert_eq!(reply_rate.seen(5, false, start), Duration::ZERO);
        assert_eq!(reply_rate.seen(5, true, start), Duration::ZERO, "nothing is known yet");
        assert_eq!(reply_rate.seen(15, true, start + MS), MS / 10 * 2);
        assert_eq!(
            reply_rate.seen(15, true, start + MS * 2),
            MS / 10 * 2,
            "no reply tells nothing"
        );
        let slower = reply_rate.seen(16, true, start + MS * 2);
        assert!(slower > MS / 10 * 2 && slower < PAUSE_MAX);
        assert_eq!(reply_rate.seen(17, true, start + MS * 900), PAUSE_MAX, "never for long");
        assert_eq!(reply_rate.seen(18, false, start + MS * 901), Duration::ZERO);
    }

    #[test]
    fn the_time_in_between_does_not_count() {
        let (mut reply_rate, start) = (ReplyRate::default(), Instant::now());
        reply_rate.seen(0, true, start);
        let pause = reply_rate.seen(10, true, start + MS);
        reply_rate.seen(11, false, start + MS * 2);
        assert_eq!(reply_rate.seen(11, true, start + MS * 5000), pause);
    }

    #[test]
    fn all_clones_allow_the_same() {
        let coalescing = ReplyCoalescing::default();
        let other = coalescing.clone();
        assert_eq!(other.allowed(), Duration::ZERO);
        coalescing.allow(MS);
        assert_eq!(other.allowed(), MS);
    }
}
