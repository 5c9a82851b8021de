//! `leaderElection`: the same fields as in kube-scheduler's file.

use std::time::Duration;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ConfigurationError;
use crate::election::ElectionSettings;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct LeaderElection {
    /// Whether replicas agree on one that decides; `--leader-elect` goes before.
    pub leader_elect: Option<bool>,
    /// A replica that does not lead waits this long after the last renewal that it saw. Whole seconds, up to 1 h.
    #[schemars(with = "Option<String>")]
    lease_duration: Option<SignedDuration>,
    /// The leader stops this long after the last renewal that it sent.
    #[schemars(with = "Option<String>")]
    renew_deadline: Option<SignedDuration>,
    /// How often it renews.
    #[schemars(with = "Option<String>")]
    retry_period: Option<SignedDuration>,
    /// `leases` is the only one.
    resource_lock: Option<String>,
    /// The Lease; `kube-scheduler` is refused without `--replace-default`.
    resource_name: Option<String>,
    /// Where the Lease is.
    resource_namespace: Option<String>,
}

impl LeaderElection {
    /// What is not said follows from the lease duration, in kube-scheduler's proportions.
    pub fn read(
        self,
        replace_default: bool,
        notes: &mut Vec<String>,
    ) -> Result<ElectionSettings, ConfigurationError> {
        if !replace_default && self.resource_name.as_deref() == Some("kube-scheduler") {
            return Err(ConfigurationError::LeaseOfKubeScheduler);
        }
        if let Some(lock) = self.resource_lock.filter(|lock| lock != "leases") {
            return Err(ConfigurationError::ResourceLock(lock));
        }
        let default = ElectionSettings::default();
        let lease_duration = positive(self.lease_duration).unwrap_or(default.lease_duration);
        let lasting = ElectionSettings::lasting(lease_duration);
        let settings = ElectionSettings {
            namespace: self.resource_namespace.unwrap_or(lasting.namespace),
            name: self.resource_name.unwrap_or(lasting.name),
            lease_duration,
            renew_deadline: positive(self.renew_deadline).unwrap_or(lasting.renew_deadline),
            retry_period: positive(self.retry_period).unwrap_or(lasting.retry_period),
        };
        if (&settings.namespace, &settings.name) != (&default.namespace, &default.name) {
            notes.push(format!(
                "the Lease is {}/{}: name it in paramRef of config/admission/leader-fence.yaml and in \
                 config/rbac too, where {}/{} is expected",
                settings.namespace, settings.name, default.namespace, default.name
            ));
        }
        settings.check().map_err(ConfigurationError::LeaderElection)
    }
}

/// A time that is not positive is none: the check refuses it by name.
fn positive(duration: Option<SignedDuration>) -> Option<Duration> {
    duration.map(|duration| Duration::try_from(duration).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: serde_json::Value) -> Result<(ElectionSettings, Vec<String>), String> {
        let mut notes = Vec::new();
        let file: LeaderElection = serde_json::from_value(value).map_err(|it| it.to_string())?;
        let settings = file.read(false, &mut notes).map_err(|it| it.to_string())?;
        Ok((settings, notes))
    }

    #[test]
    fn what_is_not_said_follows_from_the_lease_duration() {
        let (settings, notes) = read(json!({"leaseDuration": "3s"})).unwrap();
        assert_eq!(settings, ElectionSettings::lasting(Duration::from_secs(3)));
        assert!(notes.is_empty());
        let full = json!({
            "leaderElect": true, "leaseDuration": "1m0s", "renewDeadline": "40s",
            "retryPeriod": "500ms", "resourceLock": "leases", "resourceName": "mine",
            "resourceNamespace": "elsewhere",
        });
        let (settings, notes) = read(full).unwrap();
        assert_eq!(settings.lease_duration, Duration::from_mins(1));
        assert_eq!(settings.retry_period, Duration::from_millis(500));
        assert!(notes[0].contains("elsewhere/mine"), "{notes:?}");
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        let cases = [
            (json!({"resourceName": "kube-scheduler"}), "own Lease"),
            (json!({"resourceLock": "configmaps"}), "configmaps"),
            (json!({"leaseDuration": "5s", "renewDeadline": "6s"}), "renewDeadline"),
            (json!({"leaseDuration": "-5s"}), "leaseDuration"),
            (json!({"retryPeriod": "0s"}), "retryPeriod"),
            (json!({"leaseDuratoin": "5s"}), "leaseDuratoin"),
        ];
        for (file, part) in cases {
            let error = read(file.clone()).unwrap_err();
            assert!(error.contains(part), "{file}: {error}");
        }
    }
}
