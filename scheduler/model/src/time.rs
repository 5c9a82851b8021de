//! Monotonic time as an argument: nothing in the pure crates can read a clock.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// As nanoseconds since the start, which are exact for 584 years.
impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(self.since_start.as_nanos()).unwrap_or(u64::MAX).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from).map(|nanos| Self::from_start(Duration::from_nanos(nanos)))
    }
}
