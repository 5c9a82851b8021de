use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prost::Message;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::absent::null_as_default;
use super::meta::WireTime;
use super::{
    FromProtobuf, NOT_COMPLETED, WireAffinity, WireContainer, WireContainerStatus, WireQuantity,
    WireResourceLists, WireSpreadConstraint, WireVolume, kube_resource, meta, protobuf,
};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WirePod {
    #[serde(deserialize_with = "meta::of_pod")]
    pub metadata: ObjectMeta,
    pub spec: WirePodSpec,
    pub status: WirePodStatus,
}

impl WirePod {
    /// It runs no more, and never will again.
    pub fn is_completed(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodSpec {
    pub scheduler_name: String,
    pub node_name: String,
    pub priority: Option<i32>,
    pub preemption_policy: String,
    pub node_selector: BTreeMap<String, String>,
    pub tolerations: Vec<WireToleration>,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<WireContainer>,
    pub init_containers: Vec<WireContainer>,
    pub overhead: BTreeMap<String, WireQuantity>,
    pub resources: WireResourceLists,
    pub scheduling_gates: Vec<WireSchedulingGate>,
    pub affinity: WireAffinity,
    pub topology_spread_constraints: Vec<WireSpreadConstraint>,
    pub resource_claims: Vec<WirePodClaim>,
    pub scheduling_group: Option<IgnoredAny>,
    pub workload_ref: Option<IgnoredAny>,
    pub volumes: Vec<WireVolume>,
    pub host_network: bool,
    pub host_users: Option<bool>,
    pub active_deadline_seconds: Option<i64>,
    pub termination_grace_period_seconds: Option<i64>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireToleration {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub operator: String,
    #[prost(string, tag = "3")]
    pub value: String,
    #[prost(string, tag = "4")]
    pub effect: String,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireSchedulingGate {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// An entry of `spec.resourceClaims`.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodClaim {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, optional, tag = "3")]
    pub resource_claim_name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub resource_claim_template_name: Option<String>,
}

/// What was made of an entry of `spec.resourceClaims` that names a template.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodClaimStatus {
    #[prost(string, tag = "1")]
    pub name: String,
    /// Without one, no claim is needed.
    #[prost(string, optional, tag = "2")]
    pub resource_claim_name: Option<String>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodStatus {
    #[prost(string, tag = "1")]
    pub phase: String,
    #[prost(message, repeated, tag = "2")]
    pub conditions: Vec<WireCondition>,
    #[prost(string, tag = "3")]
    pub message: String,
    #[prost(string, tag = "4")]
    pub reason: String,
    #[prost(message, required, tag = "7")]
    pub start_time: WireTime,
    #[prost(message, repeated, tag = "8")]
    pub container_statuses: Vec<WireContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    pub init_container_statuses: Vec<WireContainerStatus>,
    #[prost(string, tag = "11")]
    pub nominated_node_name: String,
    #[prost(message, repeated, tag = "15")]
    pub resource_claim_statuses: Vec<WirePodClaimStatus>,
    /// Of Pod-level requests: what the kubelet has admitted, …
    #[prost(btree_map = "string, message", tag = "19")]
    pub allocated_resources: BTreeMap<String, WireQuantity>,
    /// … and applied.
    #[prost(message, optional, tag = "20")]
    pub resources: Option<WireResourceLists>,
}

impl WirePodStatus {
    /// The first condition of this type, as Kubernetes looks for it.
    pub fn condition(&self, condition_type: &str) -> Option<&WireCondition> {
        self.conditions.iter().find(|condition| condition.condition_type == condition_type)
    }
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireCondition {
    #[serde(rename = "type")]
    #[prost(string, tag = "1")]
    pub condition_type: String,
    #[prost(string, tag = "2")]
    pub status: String,
    #[prost(string, tag = "5")]
    pub reason: String,
    #[prost(string, tag = "6")]
    pub message: String,
}

/// The condition of a Pod that is about to be disrupted, …
pub(crate) const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// … and its reason when that makes room for a more important one.
pub(crate) const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

kube_resource!(WirePod, "Pod", "", "v1", "pods", Namespaced, {
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(protobuf::pod);
    const LISTED: Option<&'static str> = Some(NOT_COMPLETED);
});
