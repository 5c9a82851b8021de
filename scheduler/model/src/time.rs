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
    /// Exact for 584 years.
    nanos_since_start: u64,
}

impl Instant {
    pub const START: Self = Self { nanos_since_start: 0 };

    pub const fn from_start(since_start: Duration) -> Self {
        Self { nanos_since_start: nanos(since_start) }
    }

    pub const fn since_start(self) -> Duration {
        Duration::from_nanos(self.nanos_since_start)
    }

    /// How long ago `earlier` was; zero when it is in the future.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since_start.saturating_sub(earlier.nanos_since_start))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is the lesser of the two")]
const fn nanos(span: Duration) -> u64 {
    let nanos = span.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self { nanos_since_start: self.nanos_since_start.saturating_add(nanos(span)) }
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self { nanos_since_start: self.nanos_since_start.saturating_sub(nanos(span)) }
    }
}

/// As nanoseconds since the start.
impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.nanos_since_start.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from).map(|nanos_since_start| Self { nanos_since_start })
    }
}
