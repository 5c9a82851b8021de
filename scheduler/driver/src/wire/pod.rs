use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::absent::null_as_default;
use super::{
    FromProtobuf, NOT_COMPLETED, WireAffinity, WireContainer, WireContainerStatus,
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
    pub overhead: BTreeMap<String, String>,
    pub resources: WireResourceLists,
    pub scheduling_gates: Vec<WireSchedulingGate>,
    pub affinity: WireAffinity,
    pub topology_spread_constraints: Vec<WireSpreadConstraint>,
    pub resource_claims: Vec<IgnoredAny>,
    pub scheduling_group: Option<IgnoredAny>,
    pub workload_ref: Option<IgnoredAny>,
    pub volumes: Vec<WireVolume>,
    pub host_network: bool,
    pub host_users: Option<bool>,
    pub active_deadline_seconds: Option<i64>,
    pub termination_grace_period_seconds: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireToleration {
    pub key: String,
    pub operator: String,
    pub value: String,
    pub effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireSchedulingGate {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodStatus {
    pub phase: String,
    pub reason: String,
    pub message: String,
    pub nominated_node_name: String,
    pub start_time: Option<Time>,
    pub conditions: Vec<WireCondition>,
    pub container_statuses: Vec<WireContainerStatus>,
    pub init_container_statuses: Vec<WireContainerStatus>,
    /// Of Pod-level requests: what the kubelet has applied, …
    pub resources: Option<WireResourceLists>,
    /// … and admitted.
    pub allocated_resources: BTreeMap<String, String>,
}

impl WirePodStatus {
    /// The first condition of this type, as Kubernetes looks for it.
    pub fn condition(&self, condition_type: &str) -> Option<&WireCondition> {
        self.conditions.iter().find(|condition| condition.condition_type == condition_type)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
    pub reason: String,
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
