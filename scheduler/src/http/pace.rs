//! How often something is done, over all users. Time is an argument.

use std::time::{Duration, Instant};

/// How often something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub per_second: u32,
    /// At once, after a pause.
    pub burst: u32,
}

/// A bucket of tokens, kept as the moment at which it will be full again: so nothing has to be
/// counted up, and no fraction is lost.
#[derive(Debug)]
pub struct Bucket {
    /// In which one token comes back.
    every: Duration,
    /// In which an empty bucket fills.
    whole: Duration,
    /// `None` = it was never used.
    full_at: Option<Instant>,
}

impl Bucket {
    pub fn new(pace: Pace) -> Self {
        let every = Duration::from_secs(1) / pace.per_second.max(1);
        Self { every, whole: every * pace.burst.max(1), full_at: None }
    }

    /// Takes a token, or says how long it takes until there is one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let was_full_at = self.full_at.map_or(now, |at| at.max(now));
        let full_at = was_full_at + self.every;
        let too_soon_by = full_at.duration_since(now).saturating_sub(self.whole);
        if !too_soon_by.is_zero() {
            return Err(too_soon_by);
        }
        self.full_at = Some(full_at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { per_second: 10, burst: 20 };

    fn taken(bucket: &mut Bucket, now: Instant, tries: usize) -> usize {
        (0..tries).filter(|_| bucket.take(now).is_ok()).count()
    }

    #[test]
    fn a_burst_passes_and_then_so_many_in_a_second() {
        let (mut bucket, start) = (Bucket::new(PACE), Instant::now());
        assert_eq!(taken(&mut bucket, start, 100), 20);
        let mut passed = 0;
        for millisecond in 1..=10_000 {
            passed += taken(&mut bucket, start + Duration::from_millis(millisecond), 3);
        }
        assert_eq!(passed, 100);
    }

    #[test]
    fn a_user_that_waits_as_long_as_required_passes() {
        let (mut bucket, start) = (Bucket::new(PACE), Instant::now());
        assert_eq!(taken(&mut bucket, start, 20), 20);
        let wait = bucket.take(start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(bucket.take(start + wait.saturating_sub(Duration::from_nanos(1))).is_err());
        assert!(bucket.take(start + wait).is_ok());
    }

    #[test]
    fn a_long_pause_earns_one_burst_and_no_more() {
        let (mut bucket, start) = (Bucket::new(PACE), Instant::now());
        taken(&mut bucket, start, 100);
        assert_eq!(taken(&mut bucket, start + Duration::from_hours(1), 100), 20);
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_nothing_away() {
        let (mut bucket, earlier) = (Bucket::new(PACE), Instant::now());
        let now = earlier + Duration::from_mins(1);
        assert_eq!(taken(&mut bucket, now, 100), 20);
        assert_eq!(taken(&mut bucket, earlier, 100), 0);
        assert_eq!(taken(&mut bucket, now, 100), 0);
    }

    #[test]
    fn even_a_pace_of_nothing_lets_one_pass() {
        let (mut bucket, start) = (Bucket::new(Pace { per_second: 0, burst: 0 }), Instant::now());
        assert_eq!(taken(&mut bucket, start, 5), 1);
    }
}
