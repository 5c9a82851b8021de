//! What the simulated daemons know about an object, as it is stored.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::attestd::Device;
use crate::corrd::PathSpec;
use crate::identity::{IdempotencyKey, Owner};
use crate::memqosd::BundleSpec;

/// One allocated path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CorridorRecord {
    pub id: String,
    pub owner: Owner,
    pub key: IdempotencyKey,
    /// As first asked, to recognise a repeated request.
    pub asked: PathSpec,
    /// As it stands, with the device that was chosen.
    pub path: PathSpec,
    pub created_at: Timestamp,
    pub lease_expires_at: Timestamp,
    /// When it was last brought in tune.
    pub tuned_at: Timestamp,
    pub forced: ForcedCorridor,
}

impl CorridorRecord {
    pub(super) fn device_id(&self) -> &str {
        self.path.device_id.as_deref().unwrap_or_default()
    }
}

/// What a test made of a path. Absent: left to physics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ForcedCorridor {
    pub achievable_gbps: Option<f64>,
    pub latency_ns: Option<f64>,
    /// Powers of ten by which the bit error rate is worse. A recalibration takes them away.
    pub ber_drift_decades: f64,
    /// A recalibration changes nothing.
    pub recalibration_fails: bool,
}

/// One allocated bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct BundleRecord {
    pub handle: String,
    pub owner: Owner,
    pub key: IdempotencyKey,
    /// As first asked, to recognise a repeated request.
    pub asked: BundleSpec,
    /// As it stands, with the device that was chosen.
    pub memory: BundleSpec,
    pub created_at: Timestamp,
    pub lease_expires_at: Timestamp,
    /// The lease ran out and the bandwidth went back to the pool; durable bundles only.
    pub lapsed: bool,
    pub moved_pages: u64,
    pub forced: ForcedBundle,
}

/// What a test made of a bundle. Absent: left to physics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ForcedBundle {
    #[serde(rename = "achieved_GBs")]
    pub achieved_gbs: Option<f64>,
    pub tail_p99_ms: Option<f64>,
}

/// One step of the ledger, and one row on disk.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    PutCorridor(Box<CorridorRecord>),
    DropCorridor(String),
    PutBundle(Box<BundleRecord>),
    DropBundle(String),
    PutDevice(Box<Device>),
    PutNonce {
        nonce: String,
        seen_at: Timestamp,
    },
    DropNonce(String),
    /// The next corridor and bundle get these numbers.
    Counters(Counters),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub corridor: u64,
    pub bundle: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self { corridor: 1, bundle: 1 }
    }
}
