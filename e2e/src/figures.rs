//! Times, and what they come to.

use std::fmt;
use std::time::Duration;

/// Times of the same thing, many times.
#[derive(Debug, Clone, Default)]
pub struct Times {
    times: Vec<Duration>,
}

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.times.push(time);
        self.times.sort_unstable();
    }

    /// So many of a hundred take no longer.
    pub fn percentile(&self, of_hundred: usize) -> Duration {
        let rank = (self.times.len() * of_hundred).div_ceil(100).saturating_sub(1);
        self.times.get(rank).copied().unwrap_or_default()
    }

    pub fn max(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(
            f,
            "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms ({} times)",
            millis(self.percentile(50)),
            millis(self.percentile(99)),
            millis(self.max()),
            self.times.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_seen() {
        let mut times = Times::default();
        for millis in (1..=200).rev() {
            times.add(Duration::from_millis(millis));
        }
        assert_eq!(times.percentile(50), Duration::from_millis(100));
        assert_eq!(times.percentile(99), Duration::from_millis(198));
        assert_eq!(times.max(), Duration::from_millis(200));
        assert_eq!(Times::default().percentile(99), Duration::ZERO);
    }
}
