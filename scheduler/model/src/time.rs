//! Monotonic time as an argument: nothing in the pure crates can read a clock.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the driver's monotonic clock, counted from the start of the process.
///
/// `std::time::Instant` cannot be made without reading a clock; this one can,
/// so tests, the simulator and a replayed journal all use the same type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    since_start: Duration,
}

impl Instant {
    pub const START: Self = Self { since_start: Duration::ZERO };

    pub const fn from_start(since_start: Duration) -> Self {
        Self { since_start }
    }

    pub const fn since_start(self) -> Duration {
        self.since_start
    }

    /// How long ago `earlier` was; zero when it is in the future.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.since_start.saturating_sub(earlier.since_start)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self { since_start: self.since_start.saturating_add(span) }
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self { since_start: self.since_start.saturating_sub(span) }
    }
}
