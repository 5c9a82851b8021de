//! corrd: reserves photonic paths and keeps them in tune.

use std::mem;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, AllocationTypes, Allocator, Sample};
use crate::error::Reply;
use crate::identity::{IdempotencyKey, Owner};
use crate::reading;
use crate::telemetry::TelemetryPage;
pub use crate::traffic::{AmbientProfile, PriorityClass};

/// The path itself, as asked for and as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathSpec {
    #[serde(rename = "type", default)]
    pub corridor_type: CorridorType,
    /// 1 to 1024.
    pub lanes: u32,
    /// Wavelengths in nm, 1260 to 1675, none twice, at most one per lane.
    pub lambda_nm: Vec<u32>,
    /// The floor in Gbps. Changed in place.
    pub min_gbps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_budget_ns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_mm: Option<u32>,
    #[serde(default)]
    pub mode: CorridorMode,
    /// Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    /// Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<Recalibration>,
    /// The device that carries the path: the attested one. Absent in a request: corrd chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
}

/// Body of `POST /v1/corridors`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorridorRequest {
    pub owner: Owner,
    #[serde(flatten)]
    pub path: PathSpec,
    /// What attestd signed for this owner's object and this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

impl CorridorRequest {
    /// The key to send with it: covers the fields whose change needs another path, so not
    /// `min_gbps`, `qos` and `recalibration`, and not the ticket, which is renewed.
    pub fn key(&self) -> IdempotencyKey {
        let PathSpec {
            corridor_type,
            lanes,
            lambda_nm,
            min_gbps: _,
            latency_budget_ns,
            reach_mm,
            mode,
            qos: _,
            recalibration: _,
            device_id,
        } = &self.path;
        let wish = (corridor_type, lanes, lambda_nm, latency_budget_ns, reach_mm, mode, device_id);
        IdempotencyKey::of(&self.owner, &wish)
    }
}

/// An allocated path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corridor {
    pub corridor_id: String,
    pub owner: Owner,
    /// The key it was allocated with.
    pub idempotency_key: IdempotencyKey,
    /// `min_gbps` is the floor that corrd confirms.
    #[serde(flatten)]
    pub path: PathSpec,
    #[serde(default, deserialize_with = "reading::amount")]
    pub achievable_gbps: f64,
    /// Latency of the path as built.
    #[serde(default, deserialize_with = "reading::signal")]
    pub latency_ns: Option<f64>,
    /// The allocation is lost when its lease is not renewed for this long.
    pub policy_lease_ttl_s: u64,
    pub lease_expires_at: Timestamp,
    pub created_at: Timestamp,
}

/// Reply of `GET /v1/corridors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorridorList {
    pub corridors: Vec<Corridor>,
}

/// Body of `PATCH /v1/corridors/{id}`: what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorridorChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_gbps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<Recalibration>,
}

/// Reply of a lease renewal, for corridors and bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub policy_lease_ttl_s: u64,
    pub lease_expires_at: Timestamp,
}

/// Medium of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CorridorType {
    #[default]
    SiCorridor,
    CarbonCorridor,
}

/// How light travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CorridorMode {
    #[default]
    Waveguide,
    FreeSpace,
}

/// Traffic class of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qos {
    /// Priority flow control: pause the sender instead of dropping.
    #[serde(default)]
    pub pfc: bool,
    /// Share of what a device has beyond the floors. Absent: [`PriorityClass::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityClass>,
}

/// How a path is kept in tune.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// More than 0 and less than 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ber: Option<f64>,
    /// Surroundings to tune for. Absent: [`AmbientProfile::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambient_profile: Option<AmbientProfile>,
}

/// Body of `POST /v1/corridors/{id}/recalibrate`. Absent fields: those of the allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecalibrationRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ber: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambient_profile: Option<AmbientProfile>,
    /// Why, for the daemon's log, e.g. `ber_drift` or `spec_change`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a recalibration ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalibrationResult {
    pub corridor_id: String,
    /// Whether the worst wavelength is below the target now. Absent counts as false.
    #[serde(default)]
    pub converged: bool,
    /// Worst wavelength, after.
    #[serde(default, deserialize_with = "reading::ber")]
    pub ber: Option<f64>,
    #[serde(default)]
    pub lambdas: Vec<LambdaTuning>,
}

/// Where HELIOPASS has set one wavelength.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LambdaTuning {
    pub lambda_nm: u32,
    #[serde(default, deserialize_with = "reading::signal")]
    pub bias_mv: Option<f64>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub lambda_shift_nm: Option<f64>,
}

/// One sample of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorridorTelemetry {
    pub corridor_id: String,
    pub owner: Owner,
    pub sampled_at: Timestamp,
    #[serde(default, deserialize_with = "reading::amount")]
    pub achievable_gbps: f64,
    /// The floor it is compared with.
    #[serde(default)]
    pub min_gbps: u32,
    /// Worst wavelength.
    #[serde(default, deserialize_with = "reading::ber")]
    pub ber: Option<f64>,
    /// What it should be: as asked, else the daemon's own.
    #[serde(default, deserialize_with = "reading::ber")]
    pub target_ber: Option<f64>,
    /// `ok`, `fail` or a number of dB.
    #[serde(default)]
    pub eye_margin: Option<String>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub latency_ns: Option<f64>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub temp_c: Option<f64>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub power_pj_per_bit: Option<f64>,
    /// Energy that HELIOPASS has saved since the allocation.
    #[serde(default, deserialize_with = "reading::signal")]
    pub power_saved_kj: Option<f64>,
    /// `low`, `medium` or `high`.
    #[serde(default)]
    pub drift: Option<String>,
    #[serde(default)]
    pub lambdas: Vec<LambdaReading>,
}

impl CorridorTelemetry {
    pub fn is_below_floor(&self) -> bool {
        self.achievable_gbps < f64::from(self.min_gbps)
    }
}

/// One sample of one wavelength.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LambdaReading {
    pub lambda_nm: u32,
    #[serde(default, deserialize_with = "reading::amount")]
    pub throughput_gbps: f64,
    #[serde(default, deserialize_with = "reading::ber")]
    pub ber: Option<f64>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub eye_margin_db: Option<f64>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub bias_mv: Option<f64>,
    #[serde(default, deserialize_with = "reading::signal")]
    pub lambda_shift_nm: Option<f64>,
}

impl Allocation for Corridor {
    fn id(&self) -> &str {
        &self.corridor_id
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn device(&self) -> Option<&str> {
        self.path.device_id.as_deref()
    }

    fn lease(&self) -> (u64, Timestamp) {
        (self.policy_lease_ttl_s, self.lease_expires_at)
    }

    fn set_lease(&mut self, lease: Lease) {
        (self.policy_lease_ttl_s, self.lease_expires_at) =
            (lease.policy_lease_ttl_s, lease.lease_expires_at);
    }
}

impl AllocationTypes for Corridor {
    type Request = CorridorRequest;
    type Sample = CorridorTelemetry;

    fn key(request: &CorridorRequest) -> IdempotencyKey {
        request.key()
    }

    fn with_ticket(request: CorridorRequest, ticket: Option<String>) -> CorridorRequest {
        CorridorRequest { ticket, ..request }
    }

    fn samples(page: &mut TelemetryPage) -> Vec<CorridorTelemetry> {
        mem::take(&mut page.corridors)
    }
}

impl Sample for CorridorTelemetry {
    fn id(&self) -> &str {
        &self.corridor_id
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }
}

/// What a controller needs of corrd beside [`Allocator`].
pub trait Corrd: Allocator<Corridor> {
    /// `PATCH /v1/corridors/{id}`. Repeatable: fields are set, not changed by an amount.
    fn update<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Owner,
        change: &'a CorridorChange,
    ) -> Reply<'a, Corridor>;
    /// `POST /v1/corridors/{id}/recalibrate`. Never repeated by the client: light is interrupted.
    fn recalibrate<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Owner,
        ask: &'a RecalibrationRequest,
    ) -> Reply<'a, RecalibrationResult>;
}
