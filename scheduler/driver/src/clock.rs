//! The one place where the driver reads clocks.

use std::time::Duration;

use jiff::Timestamp;
use model::Instant;

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    started: tokio::time::Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { started: tokio::time::Instant::now() }
    }

    pub fn now(&self) -> Instant {
        Instant::from_start(self.started.elapsed())
    }

    pub fn deadline(&self, at: Instant) -> tokio::time::Instant {
        self.started + at.since_start()
    }
}

pub(crate) fn wall_clock() -> Timestamp {
    Timestamp::now()
}

/// How long ago `then` was; a time in the future counts as now.
pub(crate) fn age(then: Timestamp) -> Duration {
    Duration::try_from(wall_clock().duration_since(then)).unwrap_or(Duration::ZERO)
}
