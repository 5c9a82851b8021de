//! Events, and how many of them one object may cause.

use std::time::Duration;

use jiff::Timestamp;

/// At once, and again after a quiet time: more than an object with a few failures causes.
const BURST: u32 = 25;
/// Then one in this time. Both as in client-go's recorder of Events, which drops the rest as well: the status has the
/// current state.
const INTERVAL: Duration = Duration::from_mins(5);

/// One Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub is_warning: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Event {
    pub fn warning(reason: &'static str, message: String) -> Self {
        Self { is_warning: true, reason, message }
    }
}

/// A token bucket, kept as the time at which it will be full again.
#[derive(Clone, Debug, Default)]
pub struct EventBudget {
    /// `None` = it was never used.
    full_at: Option<Timestamp>,
}

impl EventBudget {
    /// Whether one more Event may be written.
    pub fn take(&mut self, now: Timestamp) -> bool {
        let was_full_at = self.full_at.map_or(now, |at| at.max(now));
        let Ok(full_at) = was_full_at.checked_add(INTERVAL) else { return false };
        let debt = Duration::try_from(full_at.duration_since(now)).unwrap_or_default();
        let is_left = debt <= INTERVAL * BURST;
        if is_left {
            self.full_at = Some(full_at);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_one_in_five_minutes() {
        let (mut budget, start) = (EventBudget::default(), Timestamp::UNIX_EPOCH);
        let taken = |budget: &mut EventBudget, now| (0..100).filter(|_| budget.take(now)).count();
        assert_eq!(taken(&mut budget, start), 25);
        assert_eq!(taken(&mut budget, start + INTERVAL), 1);
        assert_eq!(taken(&mut budget, start - INTERVAL), 0, "a clock that was set back");
        assert_eq!(taken(&mut budget, start + INTERVAL * 100), 25);
    }
}
