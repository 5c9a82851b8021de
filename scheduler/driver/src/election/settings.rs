//! The three times of a leader election, and where its Lease is.

use std::time::Duration;

/// As in kube-scheduler's `leaderElection`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionSettings {
    pub namespace: String,
    pub name: String,
    /// A replica that does not lead waits this long after the last renewal that it saw.
    pub lease_duration: Duration,
    /// The leader stops this long after the last renewal that it sent.
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "leaderElection.leaseDuration must be whole seconds, from 1 s to 1 h: a Lease knows no others"
    )]
    LeaseDuration,
    #[error(
        "leaderElection.renewDeadline ({renew_deadline:?}) must be at least {margin:?} below leaseDuration \
         ({lease_duration:?}): the last write of a leader must end before another can lead"
    )]
    RenewDeadline { renew_deadline: Duration, lease_duration: Duration, margin: Duration },
    #[error(
        "leaderElection.retryPeriod ({retry_period:?}) must be above 0 and at most a third of renewDeadline \
         ({renew_deadline:?}): one lost renewal must not cost the term"
    )]
    RetryPeriod { retry_period: Duration, renew_deadline: Duration },
}

const LEASE_DURATION: Duration = Duration::from_secs(15);
/// A replica that is gone for longer than this is not worth waiting for.
const LEASE_DURATION_MAX: Duration = Duration::from_hours(1);
/// Less than this, and a write would have no time to be answered.
const MARGIN_MIN: Duration = Duration::from_millis(250);

impl Default for ElectionSettings {
    fn default() -> Self {
        Self::lasting(LEASE_DURATION)
    }
}

impl ElectionSettings {
    /// With kube-scheduler's proportions: 15 s, 10 s and 2 s.
    pub fn lasting(lease_duration: Duration) -> Self {
        Self {
            namespace: crds::SYSTEM_NAMESPACE.to_owned(),
            name: crds::SCHEDULER_NAME.to_owned(),
            lease_duration,
            renew_deadline: lease_duration * 2 / 3,
            retry_period: lease_duration * 2 / 15,
        }
    }

    pub fn check(self) -> Result<Self, SettingsError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = self;
        let is_whole = lease_duration.subsec_nanos() == 0 && !lease_duration.is_zero();
        if !is_whole || lease_duration > LEASE_DURATION_MAX {
            return Err(SettingsError::LeaseDuration);
        }
        if renew_deadline + MARGIN_MIN > lease_duration {
            let margin = MARGIN_MIN;
            return Err(SettingsError::RenewDeadline { renew_deadline, lease_duration, margin });
        }
        if retry_period.is_zero() || retry_period * 3 > renew_deadline {
            return Err(SettingsError::RetryPeriod { retry_period, renew_deadline });
        }
        Ok(self)
    }

    /// A write that is sent in the last moment of a term has ended, one way or the other, before
    /// another replica can lead. A fifth is left for the way there.
    pub fn write_timeout(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline) * 4 / 5
    }

    /// One call to the API server about the Lease: a connection that has died must leave time for
    /// another attempt.
    pub(super) fn call_timeout(&self) -> Duration {
        self.renew_deadline / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_defaults_are_those_of_kube_scheduler() {
        let settings = ElectionSettings::default().check().unwrap();
        assert_eq!(settings.renew_deadline, ms(10_000));
        assert_eq!(settings.retry_period, ms(2_000));
        assert_eq!(settings.write_timeout(), ms(4_000));
        assert!(ElectionSettings::lasting(ms(1_000)).check().is_ok());
    }

    #[test]
    fn times_that_cannot_be_kept_are_refused_by_name() {
        let with = |lease, renew, retry| {
            let settings = ElectionSettings {
                lease_duration: ms(lease),
                renew_deadline: ms(renew),
                retry_period: ms(retry),
                ..ElectionSettings::default()
            };
            settings.check().unwrap_err().to_string()
        };
        assert!(with(0, 0, 0).contains("leaseDuration"));
        assert!(with(1_500, 1_000, 100).contains("whole seconds"));
        assert!(with(15_000, 15_000, 2_000).contains("renewDeadline"));
        assert!(with(15_000, 10_000, 0).contains("retryPeriod"));
        assert!(with(15_000, 10_000, 5_000).contains("retryPeriod"));
    }
}
