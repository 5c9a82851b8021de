//! `CorridorConfiguration`: what an operator sets for the controllers, as YAML.

use std::path::PathBuf;
use std::time::Duration;

use daemons::ticket::TrustedKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// The document of kind `CorridorConfiguration`. What is left out keeps its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CorridorConfiguration {
    /// `corridoros.io/v1alpha1`.
    pub api_version: String,
    /// What is written of readings.
    pub telemetry: TelemetryConfiguration,
    /// Bit errors.
    pub ber: BerConfiguration,
    /// Floors and latency budgets that are crossed again and again.
    pub floor: FloorConfiguration,
    pub backends: BackendsConfiguration,
    /// Tickets of devices.
    pub attestation: AttestationConfiguration,
    /// How often the daemons are asked for allocations without an owner, in seconds: 1 to 86,400, as all seconds here.
    pub sweep_interval_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TelemetryConfiguration {
    /// Readings that left their deadband are written to a status no more often than this.
    pub status_interval_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BerConfiguration {
    /// How long a bit error rate must stay on one side before it counts.
    pub dwell_seconds: Option<u32>,
    /// HELIOPASS runs no more often than this for one Corridor.
    pub recalibration_interval_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FloorConfiguration {
    /// How long a floor or a latency budget must be kept before that counts, once it was crossed a second time in a
    /// short while. It doubles with each further relapse, up to 64 times; a first return counts at once. 0: every
    /// return counts at once.
    pub dwell_seconds: Option<u32>,
}

/// Where the daemons answer; a flag of the command line goes before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BackendsConfiguration {
    /// Where corrd answers, with `--backends http`.
    pub corrd_url: Option<String>,
    /// Where memqosd answers.
    pub memqosd_url: Option<String>,
    /// Where attestd answers. Its tickets are verified with `attestation.trustedKeys`.
    pub attestd_url: Option<String>,
    /// Mutual TLS; then every URL must be `https`. The files are read again when they change.
    pub tls: Option<TlsConfiguration>,
}

/// PEM files. Both sides prove who they are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsConfiguration {
    /// Who may sign the daemons' certificates.
    pub ca_file: PathBuf,
    /// What we show them.
    pub cert_file: PathBuf,
    /// The key of that certificate.
    pub key_file: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AttestationConfiguration {
    /// How often live tickets are held against the policies.
    pub audit_interval_seconds: Option<u32>,
    /// The only keys that tickets are verified with. They never come from attestd itself.
    pub trusted_keys: Vec<TrustedKey>,
}

impl CorridorConfiguration {
    pub const KIND: &'static str = "CorridorConfiguration";

    /// Everything that has a default, at that.
    pub fn in_force_by_default() -> Self {
        let settings = Settings::default();
        let seconds = |it: Duration| u32::try_from(it.as_secs()).ok();
        Self {
            api_version: crds::API_VERSION.to_owned(),
            telemetry: TelemetryConfiguration {
                status_interval_seconds: seconds(settings.status_interval),
            },
            ber: BerConfiguration {
                dwell_seconds: seconds(settings.ber_dwell),
                recalibration_interval_seconds: seconds(settings.recalibration_interval),
            },
            floor: FloorConfiguration { dwell_seconds: seconds(settings.floor_dwell) },
            backends: BackendsConfiguration::default(),
            attestation: AttestationConfiguration {
                audit_interval_seconds: seconds(settings.audit_interval),
                trusted_keys: Vec::new(),
            },
            sweep_interval_seconds: seconds(settings.sweep_interval),
        }
    }

    /// The defaults with everything that is set here.
    pub fn settings(&self) -> Result<Settings, ConfigurationError> {
        let expected = crds::API_VERSION;
        if self.api_version != expected {
            let found = self.api_version.clone();
            return Err(ConfigurationError::ApiVersion { expected, found });
        }
        let mut settings = Settings::default();
        let fields = [
            (
                "telemetry.statusIntervalSeconds",
                self.telemetry.status_interval_seconds,
                &mut settings.status_interval,
            ),
            ("ber.dwellSeconds", self.ber.dwell_seconds, &mut settings.ber_dwell),
            (
                "ber.recalibrationIntervalSeconds",
                self.ber.recalibration_interval_seconds,
                &mut settings.recalibration_interval,
            ),
            (
                "attestation.auditIntervalSeconds",
                self.attestation.audit_interval_seconds,
                &mut settings.audit_interval,
            ),
            ("sweepIntervalSeconds", self.sweep_interval_seconds, &mut settings.sweep_interval),
        ];
        for (field, seconds, setting) in fields {
            set_seconds(field, 1, seconds, setting)?;
        }
        let dwell = self.floor.dwell_seconds;
        set_seconds("floor.dwellSeconds", 0, dwell, &mut settings.floor_dwell)?;
        Ok(settings)
    }
}

fn set_seconds(
    field: &'static str,
    min: u32,
    seconds: Option<u32>,
    setting: &mut Duration,
) -> Result<(), ConfigurationError> {
    match seconds {
        None => {}
        Some(seconds) if (min..=SECONDS_MAX).contains(&seconds) => {
            *setting = Duration::from_secs(seconds.into());
        }
        Some(seconds) => return Err(ConfigurationError::Seconds { field, seconds, min }),
    }
    Ok(())
}

/// A day: whatever should happen less often is switched off by mistake.
const SECONDS_MAX: u32 = 86_400;

/// Why a `CorridorConfiguration` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    #[error("apiVersion of CorridorConfiguration is {found:?}; it must be {expected}")]
    ApiVersion { expected: &'static str, found: String },
    #[error("{field} is {seconds}; it must be {min} to {SECONDS_MAX}")]
    Seconds { field: &'static str, seconds: u32, min: u32 },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration() -> CorridorConfiguration {
        let api_version = crds::API_VERSION.to_owned();
        CorridorConfiguration { api_version, ..CorridorConfiguration::default() }
    }

    #[test]
    fn what_is_left_out_keeps_its_default() {
        let mut configuration = configuration();
        assert_eq!(configuration.settings().unwrap(), Settings::default());
        let said = CorridorConfiguration::in_force_by_default();
        assert_eq!(said.settings().unwrap(), Settings::default());
        configuration.ber.dwell_seconds = Some(7);
        let expected = Settings { ber_dwell: Duration::from_secs(7), ..Settings::default() };
        assert_eq!(configuration.settings().unwrap(), expected);
        configuration.floor.dwell_seconds = Some(0);
        assert_eq!(configuration.settings().unwrap().floor_dwell, Duration::ZERO);
    }

    #[test]
    fn a_wrong_value_is_named() {
        let mut configuration = configuration();
        configuration.sweep_interval_seconds = Some(0);
        let error = configuration.settings().unwrap_err().to_string();
        assert_eq!(error, "sweepIntervalSeconds is 0; it must be 1 to 86400");
        configuration.api_version = "corridoros.io/v9".to_owned();
        let error = configuration.settings().unwrap_err().to_string();
        assert!(error.contains("corridoros.io/v9") && error.contains(crds::API_VERSION), "{error}");
    }
}
