//! `MemoryBundle`: free-form memory (FFM) with a bandwidth floor.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, PodUse, Schedule};

/// The memory that is wanted.
// The immutable fields have defaults, so that both sides of a comparison are
// always present: unset and set again cannot slip past a rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "corridoros.io",
    version = "v1alpha1",
    kind = "MemoryBundle",
    namespaced,
    status = "MemoryBundleStatus",
    derive = "PartialEq",
    doc = "Memory allocated by its properties, with a bandwidth floor. Pods refer to it by the annotation corridoros.io/memoryBundleRef.",
    shortname = "mb",
    category = "corridoros",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.latencyClass"),
    printcolumn(
        name = "Size",
        type_ = "string",
        json_path = ".status.size",
        description = "Memory that is allocated, in binary units"
    ),
    printcolumn(
        name = "Asked",
        type_ = "integer",
        json_path = ".spec.bandwidthFloorGBs",
        description = "Bandwidth floor that the spec asks for outside of every window, in GB/s"
    ),
    printcolumn(
        name = "Floor",
        type_ = "number",
        json_path = ".status.floorGBs",
        description = "Guaranteed bandwidth in GB/s that is in force now, as memqosd has confirmed it"
    ),
    printcolumn(
        name = "Achieved",
        type_ = "number",
        json_path = ".status.achievedGBs",
        description = "Bandwidth that the bundle achieves now, in GB/s"
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
    printcolumn(
        name = "Handle",
        type_ = "string",
        json_path = ".status.ffmHandle",
        priority = "1"
    ),
    printcolumn(name = "Bytes", type_ = "integer", json_path = ".spec.bytes", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.persistence == oldSelf.persistence")
        .message("persistence cannot be changed: create a new MemoryBundle")
        .reason(Reason::FieldValueForbidden)
        .field_path(".persistence"),
    validation = Rule::new("self.shareable == oldSelf.shareable")
        .message("shareable cannot be changed: create a new MemoryBundle")
        .reason(Reason::FieldValueForbidden)
        .field_path(".shareable"),
    validation = Rule::new("self.securityDomain == oldSelf.securityDomain")
        .message("securityDomain cannot be changed: create a new MemoryBundle")
        .reason(Reason::FieldValueForbidden)
        .field_path(".securityDomain"),
    validation = Rule::new("oldSelf.persistence != 'durable' || self.bytes >= oldSelf.bytes")
        .message("bytes of a durable bundle cannot shrink: data would be lost")
        .reason(Reason::FieldValueForbidden)
        .field_path(".bytes")
)]
pub struct MemoryBundleSpec {
    /// Size in bytes, 1 to 2^50 (1 PiB). A change re-allocates the bundle; a durable one can only
    /// grow.
    // 2^50
    #[schemars(range(min = 1, max = 1_125_899_906_842_624_u64))]
    pub bytes: u64,
    /// Latency tier, T0 the fastest. Changed in place.
    pub latency_class: LatencyClass,
    /// Bandwidth floor in GB/s, 1 to 100000: what Pods can reserve while the bundle achieves it.
    /// Changed in place.
    #[serde(rename = "bandwidthFloorGBs")]
    #[schemars(range(min = 1, max = 100_000))]
    pub bandwidth_floor_gbs: u32,
    /// Whether the contents outlive their users. Default: none. Cannot be changed.
    #[serde(default)]
    pub persistence: Persistence,
    /// Whether several Pods may use the bundle at once. Default: false. Cannot be changed.
    #[serde(default)]
    pub shareable: bool,
    /// Pods share a bundle only within one security domain. Default: the empty domain. Cannot be
    /// changed.
    #[serde(default)]
    #[schemars(length(max = 63), regex(pattern = crate::schema::LABEL_VALUE_PATTERN))]
    pub security_domain: String,
    /// Floors that follow the clock. Default: always bandwidthFloorGBs. Changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Labels of the nodes that can reach this bundle: Pods that refer to it run only there.
    /// Default: every node. Changed in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::label_map")]
    pub node_selector: BTreeMap<String, String>,
}

impl MemoryBundleSpec {
    /// The required fields, everything else at its default.
    pub fn new(bytes: u64, latency_class: LatencyClass, bandwidth_floor_gbs: u32) -> Self {
        Self {
            bytes,
            latency_class,
            bandwidth_floor_gbs,
            persistence: Persistence::default(),
            shareable: false,
            security_domain: String::new(),
            schedule: None,
            node_selector: BTreeMap::new(),
        }
    }
}

impl MemoryBundle {
    /// The phase, `Pending` until one has been written.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
    }
}

/// Latency tier.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum LatencyClass {
    #[default]
    T0,
    T1,
    T2,
    T3,
}

/// Whether contents outlive their users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    #[default]
    None,
    Durable,
}

/// What memqosd and the scheduler report about the bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryBundleStatus {
    /// Where the bundle is in its life. Only Ready takes new Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = crate::schema::COUNT_MAX))]
    pub observed_generation: Option<i64>,
    /// Handle that memqosd gave to the allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ffm_handle: Option<String>,
    /// Memory that is allocated, in binary units: 16Gi. Only people read it; spec.bytes counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub size: Option<String>,
    /// Bandwidth that the bundle achieves now, in GB/s.
    #[serde(rename = "achievedGBs", skip_serializing_if = "Option::is_none")]
    pub achieved_gbs: Option<f64>,
    /// The floor that memqosd has confirmed, schedule included, in GB/s. Absent: that of the spec.
    #[serde(rename = "floorGBs", skip_serializing_if = "Option::is_none")]
    pub floor_gbs: Option<f64>,
    /// Pages moved between tiers since the allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = crate::schema::COUNT_MAX))]
    pub moved_pages: Option<i64>,
    /// 99th percentile of access latency in ms.
    #[serde(rename = "tailP99Ms", skip_serializing_if = "Option::is_none")]
    pub tail_p99_ms: Option<f64>,
    /// When the attestation ticket of the device expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub attestation_expires_at: Option<Time>,
    /// Number of bound Pods that hold a grant on the bundle.
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
