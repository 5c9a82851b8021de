//! `Corridor`: a reserved photonic path and its live state.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, PodUse};

/// The photonic path that is wanted.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "corridoros.io",
    version = "v1alpha1",
    kind = "Corridor",
    namespaced,
    status = "CorridorStatus",
    derive = "PartialEq",
    doc = "A reserved photonic path with a bandwidth floor. Pods refer to it by the annotation corridoros.io/corridorRef.",
    shortname = "cor",
    category = "corridoros",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Asked",
        type_ = "integer",
        json_path = ".spec.minGbps",
        description = "Bandwidth floor that the spec asks for, in Gbps"
    ),
    printcolumn(
        name = "Floor",
        type_ = "number",
        json_path = ".status.floorGbps",
        description = "Guaranteed bandwidth in Gbps, as corrd has confirmed it"
    ),
    printcolumn(
        name = "Achievable",
        type_ = "number",
        json_path = ".status.achievableGbps",
        description = "Bandwidth that the path can carry now, in Gbps"
    ),
    printcolumn(
        name = "In Use",
        type_ = "integer",
        json_path = ".status.inUse",
        description = "Pods that hold a grant"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Why it is Ready or not"
    ),
    printcolumn(name = "Id", type_ = "string", json_path = ".status.corridorId", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("size(self.lambdaNm) <= self.lanes")
    .message("lambdaNm must not name more wavelengths than there are lanes")
    .field_path(".lambdaNm"))]
pub struct CorridorSpec {
    /// Medium of the path. Default: SiCorridor. A change re-allocates the path.
    #[serde(rename = "type", default)]
    pub corridor_type: CorridorType,
    /// Number of parallel lanes, 1 to 1024. A change re-allocates the path.
    #[schemars(range(min = 1, max = 1024))]
    pub lanes: u32,
    /// Wavelengths in nm, each 1260 to 1675 (O band to U band), none twice, at most one per lane.
    /// A change re-allocates the path.
    // 416 = every whole nm of the range once.
    #[schemars(
        length(min = 1, max = 416),
        inner(range(min = 1260, max = 1675)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub lambda_nm: Vec<u32>,
    /// Bandwidth floor in Gbps, 1 to 1000000: what Pods can reserve while the path achieves it.
    /// Changed in place.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_gbps: u32,
    /// Highest acceptable latency in ns, 1 to 1000000000. Default: no limit. A change
    /// re-allocates the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub latency_budget_ns: Option<u32>,
    /// Distance to span in mm, 1 to 100000000. Default: left to the backend. A change
    /// re-allocates the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub reach_mm: Option<u32>,
    /// How light travels. Default: waveguide. A change re-allocates the path.
    #[serde(default)]
    pub mode: CorridorMode,
    /// Traffic class of the path. Default: the backend's own. Changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    /// Whether the device must pass attestation before the path is allocated. Default: true.
    /// Changed in place.
    #[serde(default = "required")]
    pub attestation_required: bool,
    /// How the path is kept in tune. Default: the backend's own. Changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<Recalibration>,
    /// Labels of the nodes that this path reaches: Pods that refer to it run only there.
    /// Default: every node. Changed in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::label_map")]
    pub node_selector: BTreeMap<String, String>,
}

impl CorridorSpec {
    /// The required fields, everything else at its default.
    pub fn new(lanes: u32, lambda_nm: impl Into<Vec<u32>>, min_gbps: u32) -> Self {
        Self {
            corridor_type: CorridorType::default(),
            lanes,
            lambda_nm: lambda_nm.into(),
            min_gbps,
            latency_budget_ns: None,
            reach_mm: None,
            mode: CorridorMode::default(),
            qos: None,
            attestation_required: required(),
            recalibration: None,
            node_selector: BTreeMap::new(),
        }
    }
}

impl Corridor {
    /// The phase, `Pending` until one has been written.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
    }
}

/// Medium of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CorridorType {
    #[default]
    SiCorridor,
    CarbonCorridor,
}

impl fmt::Display for CorridorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SiCorridor => "SiCorridor",
            Self::CarbonCorridor => "CarbonCorridor",
        })
    }
}

/// How light travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CorridorMode {
    #[default]
    Waveguide,
    FreeSpace,
}

/// Traffic class of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Qos {
    /// Priority flow control: pause the sender instead of dropping. It costs latency, which counts against
    /// latencyBudgetNs. Default: false.
    #[serde(default)]
    pub pfc: bool,
    /// Which paths get what a device has beyond the floors: bronze, silver, gold or platinum, lowest first.
    /// Floors are met in every class. Default: the backend's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["bronze", "silver", "gold", "platinum"]))]
    pub priority: Option<String>,
}

/// How a path is kept in tune.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recalibration {
    /// Bit error rate to stay below, more than 0 and less than 0.5, e.g. 1e-12. Default: the
    /// backend's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    // OpenAPI 3.0 spells an open interval as a bound and a flag.
    #[schemars(
        range(min = 0.0, max = 0.5),
        extend("exclusiveMinimum" = true, "exclusiveMaximum" = true)
    )]
    pub target_ber: Option<f64>,
    /// Surroundings to tune the path for: lab-default, cold-aisle, hot-aisle or outdoor. Default: the
    /// backend's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["lab-default", "cold-aisle", "hot-aisle", "outdoor"]))]
    pub ambient_profile: Option<String>,
}

/// What corrd and the scheduler report about the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorridorStatus {
    /// Where the path is in its life. Only Ready takes new Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = crate::schema::COUNT_MAX))]
    pub observed_generation: Option<i64>,
    /// Id that corrd gave to the allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub corridor_id: Option<String>,
    /// Bandwidth that the path can carry now, in Gbps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub achievable_gbps: Option<f64>,
    /// The floor that corrd has confirmed, in Gbps. Absent: that of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_gbps: Option<f64>,
    /// The last readings. Small moves are only in the metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<CorridorTelemetry>,
    /// When the attestation ticket of the device expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub attestation_expires_at: Option<Time>,
    /// Number of bound Pods that hold a grant on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = crate::schema::COUNT_MAX))]
    pub in_use: Option<i64>,
    /// The first 32 of those Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::IN_USE_BY_MAX), extend("x-kubernetes-list-type" = "atomic"))]
    pub in_use_by: Vec<PodUse>,
    /// Ready, Attested, UpdatePending, InUse, Drained and Oversubscribed, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::schema")]
    pub conditions: Vec<Condition>,
}

/// The last readings of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorridorTelemetry {
    /// Bit error rate, worst wavelength.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ber: Option<f64>,
    /// Eye margin as the backend words it: ok, fail or a number of dB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub eye_margin: Option<String>,
    /// Temperature in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp_c: Option<f64>,
    /// Energy per bit in pJ.
    #[serde(rename = "powerPJPerBit", skip_serializing_if = "Option::is_none")]
    pub power_pj_per_bit: Option<f64>,
    /// Drift as the backend words it, e.g. low.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub drift: Option<String>,
}

const fn required() -> bool {
    true
}
