//! Daemons, times and names that the controllers start with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use controller_runtime::Backoff;
use daemons::attestd::Attestd;
use daemons::corrd::Corrd;
use daemons::memqosd::Memqosd;
use daemons::ticket::TrustedKeys;

/// The daemons. Objects of one that is absent have the reason `BackendNotConfigured`.
#[derive(Clone, Default)]
pub struct Backends {
    pub corrd: Option<Arc<dyn Corrd>>,
    pub memqosd: Option<Arc<dyn Memqosd>>,
    pub attestd: Option<Arc<dyn Attestd>>,
    /// Keys that tickets are verified with. From the configuration, never from attestd.
    pub trusted_keys: TrustedKeys,
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backends")
            .field("corrd", &self.corrd.is_some())
            .field("memqosd", &self.memqosd.is_some())
            .field("attestd", &self.attestd.is_some())
            .finish_non_exhaustive()
    }
}

/// Every time and name that shapes the controllers. The defaults fit production.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The `cluster` label of metrics.
    pub cluster_name: String,
    /// Holder of the backend Leases.
    pub identity: String,
    /// Readings that left their deadband are written no more often than this.
    pub status_interval: Duration,
    /// The long poll of telemetry answers at least this often, so the Lease can be renewed.
    pub telemetry_wait: Duration,
    /// How often a backend Lease is renewed while its telemetry flows.
    pub lease_interval: Duration,
    /// Objects have the reason `BackendUnreachable` after this long without telemetry: as long as a backend Lease counts
    /// as fresh, so that both agree.
    pub unreachable_after: Duration,
    /// How long a bit error rate must stay on one side before it counts.
    pub ber_dwell: Duration,
    /// How long a floor or a latency budget must be kept before that counts, once it was crossed a second time in
    /// a short while. It doubles with each further relapse; a first return counts at once.
    pub floor_dwell: Duration,
    /// HELIOPASS runs no more often than this for one path: it interrupts the light.
    pub recalibration_interval: Duration,
    /// How often the daemons are asked for allocations without an owner.
    pub sweep_interval: Duration,
    /// How often live tickets are checked against the policies.
    pub audit_interval: Duration,
    /// First and longest pause after a failure.
    pub backoff_first: Duration,
    pub backoff_max: Duration,
}

impl Settings {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff { first: self.backoff_first, max: self.backoff_max }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_name: "default".to_owned(),
            identity: "corridor-controllers".to_owned(),
            status_interval: Duration::from_secs(30),
            telemetry_wait: Duration::from_millis(2500),
            lease_interval: Duration::from_secs(5),
            unreachable_after: Duration::from_secs(15),
            ber_dwell: Duration::from_mins(2),
            floor_dwell: Duration::from_secs(5),
            recalibration_interval: Duration::from_mins(5),
            sweep_interval: Duration::from_mins(1),
            audit_interval: Duration::from_mins(1),
            backoff_first: Duration::from_millis(500),
            backoff_max: Duration::from_mins(1),
        }
    }
}
