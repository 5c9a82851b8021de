//! Our own settings.

use std::time::Duration;

use engine::{Bypass, Quota};
use model::{Amount, FailurePolicy};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ProfileError;
use super::profile::ProfileSettings;

/// Settings of ours, for one profile.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct CorridorArgs {
    /// For Pods that name none.
    failure_policy: Option<Policy>,
    /// How far the head of a line may be passed by others.
    bypass: Option<BypassArgs>,
    /// Soft: beyond it, Pods of the namespace stand last in a line.
    quotas: Vec<QuotaArgs>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
enum Policy {
    Queue,
    FailFast,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct BypassArgs {
    /// How often.
    times: Option<u32>,
    /// For how long after the first time. Whichever of both comes first ends it.
    seconds: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuotaArgs {
    /// Whose Pods are counted.
    namespace: String,
    /// Of each Corridor.
    #[serde(default)]
    gbps: Option<f64>,
    /// Of each MemoryBundle.
    #[serde(default)]
    gbs: Option<f64>,
    /// Pods on each object.
    #[serde(default)]
    pods: Option<usize>,
}

impl CorridorArgs {
    pub fn apply(self, settings: &mut ProfileSettings) -> Result<(), ProfileError> {
        if let Some(policy) = self.failure_policy {
            settings.profile.failure_policy = match policy {
                Policy::Queue => FailurePolicy::Queue,
                Policy::FailFast => FailurePolicy::FailFast,
            };
        }
        let Bypass { times_max, span_max } = Bypass::default();
        settings.bypass = self.bypass.map(|bypass| Bypass {
            times_max: bypass.times.unwrap_or(times_max),
            span_max: bypass.seconds.map_or(span_max, |it| Duration::from_secs(it.into())),
        });
        let mut quotas: Vec<Quota> = Vec::new();
        for quota in self.quotas {
            let quota = quota.read()?;
            if quotas.iter().any(|it| it.namespace == quota.namespace) {
                return Err(ProfileError::QuotaTwice(quota.namespace.to_string()));
            }
            quotas.push(quota);
        }
        settings.quotas = (!quotas.is_empty()).then_some(quotas);
        Ok(())
    }
}

impl QuotaArgs {
    fn read(self) -> Result<Quota, ProfileError> {
        let amount = |field, value: Option<f64>| match value {
            None => Ok(None),
            Some(value) => match Amount::from_measured(value) {
                amount if amount.is_zero() => Err(ProfileError::Quota {
                    namespace: self.namespace.clone(),
                    field,
                    value: value.to_string(),
                }),
                amount => Ok(Some(amount)),
            },
        };
        let (corridor, bundle) = (amount("gbps", self.gbps)?, amount("gbs", self.gbs)?);
        Ok(Quota { namespace: self.namespace.as_str().into(), corridor, bundle, pods: self.pods })
    }
}
