//! Pure: when a limit that was crossed counts as kept again.
//!
//! A crossing counts at once, because the floor is not met from then on. The first return counts at once too. A limit
//! that is crossed again soon after its return is damped: it has to be kept for a dwell time without a break, twice as
//! long after each relapse. So a path that recovers is used without delay, and one whose readings alternate around its
//! floor stays Degraded: it causes no writes at the rate of telemetry, and wakes no waiting Pods.

use std::time::Duration;

use jiff::Timestamp;

/// The dwell time grows up to 64 times its first length: with the default, to about five minutes.
const DOUBLINGS_MAX: u32 = 6;
/// After as many dwell times without a crossing, earlier ones are forgotten: with the default, after five minutes.
const FORGOTTEN_AFTER_DWELLS: u32 = 60;

/// What is remembered of one limit of one allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Damping {
    /// The allocation and its limit. Another one starts from the beginning.
    of: Option<(String, u32)>,
    is_crossed: bool,
    /// Crossings that came soon after a return.
    relapses: u32,
    /// While it counts as crossed: since when it has been kept without a break.
    kept_since: Option<Timestamp>,
    /// When it last began to count as kept.
    returned_at: Option<Timestamp>,
}

/// How a limit counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitState {
    Kept,
    Crossed,
    /// It is kept, and counts as crossed until it has been for the whole of `dwell`.
    Dwelling {
        relapses: u32,
        dwell: Duration,
        remaining: Duration,
    },
}

impl Damping {
    /// `of`: the allocation and its limit. `is_crossed`: whether the latest reading crosses it.
    pub fn judge(
        &mut self,
        of: (&str, u32),
        is_crossed: bool,
        dwell: Duration,
        now: Timestamp,
    ) -> LimitState {
        if self.of.as_ref().is_none_or(|(id, limit)| (id.as_str(), *limit) != of) {
            *self = Self { of: Some((of.0.to_owned(), of.1)), ..Self::default() };
        }
        if is_crossed {
            self.cross(dwell, now);
            return LimitState::Crossed;
        }
        if !self.is_crossed {
            return LimitState::Kept;
        }
        let kept_for = since(*self.kept_since.get_or_insert(now), now);
        let dwell = self.dwell(dwell);
        if kept_for < dwell {
            let remaining = dwell.saturating_sub(kept_for);
            return LimitState::Dwelling { relapses: self.relapses, dwell, remaining };
        }
        (self.is_crossed, self.kept_since, self.returned_at) = (false, None, Some(now));
        LimitState::Kept
    }

    fn cross(&mut self, dwell: Duration, now: Timestamp) {
        self.kept_since = None;
        if self.is_crossed {
            return;
        }
        let soon = dwell.saturating_mul(FORGOTTEN_AFTER_DWELLS);
        let is_relapse = self.returned_at.is_some_and(|at| since(at, now) < soon);
        self.relapses = if is_relapse { self.relapses.saturating_add(1) } else { 0 };
        self.is_crossed = true;
    }

    /// How long it has to be kept before that counts.
    fn dwell(&self, first: Duration) -> Duration {
        match self.relapses.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => first.saturating_mul(1 << doublings.min(DOUBLINGS_MAX)),
        }
    }
}

impl LimitState {
    /// Reason and message, if it counts as crossed. `figures`: the latest reading.
    pub fn fault(
        &self,
        reason: &'static str,
        figures: impl FnOnce() -> String,
    ) -> Option<(&'static str, String)> {
        match self {
            Self::Kept => None,
            Self::Crossed => Some((reason, figures())),
            // Without figures, so that the message changes only with a crossing that counts.
            Self::Dwelling { relapses, dwell, .. } => {
                let (times, seconds) = (relapses.saturating_add(1), dwell.as_secs_f64());
                let message = format!(
                    "was crossed {times} times in a short while; counts as kept after {seconds} s without a crossing"
                );
                Some((reason, message))
            }
        }
    }

    /// When to judge again though no sample has come.
    pub fn recheck_after(&self) -> Option<Duration> {
        match self {
            Self::Dwelling { remaining, .. } => Some(*remaining),
            Self::Kept | Self::Crossed => None,
        }
    }
}

/// Zero for a clock that was set back.
fn since(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DWELL: Duration = Duration::from_secs(5);

    struct Scene {
        damping: Damping,
        now: Timestamp,
    }

    impl Scene {
        fn new() -> Self {
            Self { damping: Damping::default(), now: Timestamp::UNIX_EPOCH }
        }

        /// A reading after so long.
        fn read(&mut self, seconds: u64, is_crossed: bool) -> LimitState {
            self.now += Duration::from_secs(seconds);
            self.damping.judge(("a", 100), is_crossed, DWELL, self.now)
        }

        fn dwell(&mut self, seconds: u64) -> Option<u64> {
            match self.read(seconds, false) {
                LimitState::Dwelling { remaining, .. } => Some(remaining.as_secs()),
                LimitState::Kept => None,
                LimitState::Crossed => panic!("it is kept"),
            }
        }
    }

    #[test]
    fn a_first_return_counts_at_once() {
        let mut scene = Scene::new();
        assert_eq!(scene.read(1, false), LimitState::Kept);
        assert_eq!(scene.read(1, true), LimitState::Crossed);
        assert_eq!(scene.read(60, true), LimitState::Crossed);
        assert_eq!(scene.read(1, false), LimitState::Kept);
    }

    #[test]
    fn a_relapse_makes_the_next_return_wait_and_each_further_one_twice_as_long() {
        let mut scene = Scene::new();
        for (relapses, dwell) in [(0, 0), (1, 5), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160)] {
            assert_eq!(scene.read(1, true), LimitState::Crossed);
            assert_eq!(scene.damping.relapses, relapses);
            if dwell > 0 {
                assert_eq!(scene.dwell(1), Some(dwell));
                assert_eq!(scene.dwell(dwell - 1), Some(1));
            }
            assert_eq!(scene.dwell(1), None, "after {dwell} s");
        }
        for _ in 0..100 {
            scene.read(1, true);
            scene.read(1, false);
            scene.read(320, false);
        }
        scene.read(1, true);
        assert_eq!(scene.dwell(1), Some(320), "and no longer");
    }

    #[test]
    fn each_crossing_begins_the_dwell_time_anew() {
        let mut scene = Scene::new();
        for is_crossed in [true, false, true] {
            scene.read(1, is_crossed);
        }
        for _ in 0..1_000 {
            assert_eq!(scene.dwell(1), Some(5));
            assert_eq!(scene.dwell(4), Some(1));
            assert_eq!(scene.read(1, true), LimitState::Crossed);
        }
        assert_eq!(scene.damping.relapses, 1, "it never counted as kept");
    }

    #[test]
    fn without_a_dwell_time_every_return_counts_at_once() {
        let mut damping = Damping::default();
        for second in 0..100 {
            let (is_crossed, now) =
                (second % 2 == 0, Timestamp::UNIX_EPOCH + Duration::from_secs(second));
            let expected = if is_crossed { LimitState::Crossed } else { LimitState::Kept };
            assert_eq!(damping.judge(("a", 100), is_crossed, Duration::ZERO, now), expected);
        }
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut scene = Scene::new();
        for is_crossed in [true, false, true] {
            scene.read(1, is_crossed);
        }
        scene.read(1, false);
        assert_eq!(scene.read(5, false), LimitState::Kept);
        assert_eq!(scene.read(300, true), LimitState::Crossed);
        assert_eq!(scene.read(1, false), LimitState::Kept);
    }

    #[test]
    fn another_limit_or_allocation_begins_anew() {
        for of in [("a", 90), ("b", 100)] {
            let mut scene = Scene::new();
            for is_crossed in [true, false, true] {
                scene.read(1, is_crossed);
            }
            assert_eq!(scene.dwell(1), Some(5));
            assert_eq!(scene.damping.judge(of, false, DWELL, scene.now), LimitState::Kept);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_ends_nothing_early() {
        let mut scene = Scene::new();
        for is_crossed in [true, false, true, false] {
            scene.read(1, is_crossed);
        }
        let before = scene.now - Duration::from_hours(1);
        let state = scene.damping.judge(("a", 100), false, DWELL, before);
        assert!(matches!(state, LimitState::Dwelling { remaining: DWELL, .. }), "{state:?}");
    }

    #[test]
    fn what_is_said_while_it_dwells_does_not_change() {
        let mut scene = Scene::new();
        for is_crossed in [true, false, true] {
            scene.read(1, is_crossed);
        }
        let said = |state: LimitState| state.fault("R", || panic!("no figures"));
        let first = said(scene.read(1, false));
        assert_eq!(first, said(scene.read(2, false)));
        let text =
            "was crossed 2 times in a short while; counts as kept after 5 s without a crossing";
        assert_eq!(first, Some(("R", text.to_owned())));
    }
}
