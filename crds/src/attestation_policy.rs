//! `AttestationPolicy`: which devices may serve a namespace, and whom it serves.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Constraints on devices and on who may use them.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "corridoros.io",
    version = "v1alpha1",
    kind = "AttestationPolicy",
    plural = "attestationpolicies",
    namespaced,
    status = "AttestationPolicyStatus",
    derive = "PartialEq",
    doc = "Constraints on the devices and firmware that may serve this namespace, and the other namespaces that may use its objects. Several policies in a namespace: constraints add up, allowedTenants widen.",
    shortname = "ap",
    category = "corridoros",
    printcolumn(name = "Enforced", type_ = "boolean", json_path = ".status.enforced"),
    printcolumn(name = "PQC", type_ = "boolean", json_path = ".spec.pqcRequired"),
    printcolumn(name = "Firmware", type_ = "string", json_path = ".spec.minFirmwareVersion"),
    printcolumn(
        name = "Tenants",
        type_ = "string",
        json_path = ".spec.allowedTenants",
        priority = "1"
    ),
    printcolumn(name = "Audited", type_ = "date", json_path = ".status.lastAuditTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AttestationPolicySpec {
    /// Other namespaces whose Pods may refer to Corridors and MemoryBundles of this namespace.
    /// Default: none; the own namespace is always allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub allowed_tenants: Vec<String>,
    /// Which devices may serve this namespace. Default: every device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_selectors: Option<DeviceSelectors>,
    /// Oldest acceptable firmware, numbers separated by dots, e.g. 2.4.1. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^v?[0-9]+(\.[0-9]+){0,3}([-+][0-9A-Za-z.+-]+)?$")
    )]
    pub min_firmware_version: Option<String>,
    /// Whether tickets need a post-quantum signature (ML-DSA). Default: true. It counts in a policy
    /// that is about devices: one that lists allowedTenants and says nothing else of devices asks for
    /// nothing, and changes no allocation.
    #[serde(default = "required")]
    pub pqc_required: bool,
    /// Claims that a device must report with exactly these values. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::claim_map")]
    pub required_claims: BTreeMap<String, String>,
}

impl Default for AttestationPolicySpec {
    fn default() -> Self {
        Self {
            allowed_tenants: Vec::new(),
            device_selectors: None,
            min_firmware_version: None,
            pqc_required: required(),
            required_claims: BTreeMap::new(),
        }
    }
}

impl AttestationPolicySpec {
    /// Whether the policy is about devices, and not only about tenants.
    pub fn constrains_devices(&self) -> bool {
        let selects = self.device_selectors.as_ref().is_some_and(|it| !it.match_labels.is_empty());
        selects
            || self.min_firmware_version.is_some()
            || !self.required_claims.is_empty()
            || self.allowed_tenants.is_empty()
    }
}

/// Which devices a policy admits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSelectors {
    /// Labels that a device must carry. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::label_map")]
    pub match_labels: BTreeMap<String, String>,
}

/// What the controllers report about the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttestationPolicyStatus {
    /// Whether the policy is being applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced: Option<bool>,
    /// When the devices in use were last checked against the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_audit_time: Option<Time>,
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = crate::schema::COUNT_MAX))]
    pub observed_generation: Option<i64>,
    /// Ready, with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::schema")]
    pub conditions: Vec<Condition>,
}

const fn required() -> bool {
    true
}
