use std::collections::BTreeMap;

use prost::Message;
use serde::de::IgnoredAny;

use super::meta::Meta;
use super::volume::Volume;
use crate::wire::pod::WireSchedulingGate;
use crate::wire::{
    WireAffinity, WireContainer, WirePod, WirePodClaim, WirePodSpec, WirePodStatus, WireQuantity,
    WireResourceLists, WireSpreadConstraint, WireToleration,
};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Pod {
    #[prost(message, required, tag = "1")]
    metadata: Meta,
    #[prost(message, required, tag = "2")]
    spec: PodSpec,
    #[prost(message, required, tag = "3")]
    status: WirePodStatus,
}

impl From<Pod> for WirePod {
    fn from(pod: Pod) -> Self {
        Self { metadata: pod.metadata.into(), spec: pod.spec.into(), status: pod.status }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PodSpec {
    #[prost(message, repeated, tag = "1")]
    volumes: Vec<Volume>,
    #[prost(message, repeated, tag = "2")]
    containers: Vec<WireContainer>,
    #[prost(int64, optional, tag = "4")]
    termination_grace_period_seconds: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    active_deadline_seconds: Option<i64>,
    #[prost(btree_map = "string, string", tag = "7")]
    node_selector: BTreeMap<String, String>,
    #[prost(string, tag = "10")]
    node_name: String,
    #[prost(bool, tag = "11")]
    host_network: bool,
    #[prost(message, required, tag = "18")]
    affinity: WireAffinity,
    #[prost(string, tag = "19")]
    scheduler_name: String,
    #[prost(message, repeated, tag = "20")]
    init_containers: Vec<WireContainer>,
    #[prost(message, repeated, tag = "22")]
    tolerations: Vec<WireToleration>,
    #[prost(int32, optional, tag = "25")]
    priority: Option<i32>,
    #[prost(string, tag = "31")]
    preemption_policy: String,
    #[prost(btree_map = "string, message", tag = "32")]
    overhead: BTreeMap<String, WireQuantity>,
    #[prost(message, repeated, tag = "33")]
    topology_spread_constraints: Vec<WireSpreadConstraint>,
    #[prost(bool, optional, tag = "37")]
    host_users: Option<bool>,
    #[prost(message, repeated, tag = "38")]
    scheduling_gates: Vec<WireSchedulingGate>,
    #[prost(message, repeated, tag = "39")]
    resource_claims: Vec<WirePodClaim>,
    #[prost(message, required, tag = "40")]
    resources: WireResourceLists,
    /// Only in Kubernetes 1.35.
    #[prost(message, optional, tag = "42")]
    workload_ref: Option<Present>,
    #[prost(message, optional, tag = "43")]
    scheduling_group: Option<Present>,
}

impl From<PodSpec> for WirePodSpec {
    fn from(spec: PodSpec) -> Self {
        let is_there = |_: Present| IgnoredAny;
        Self {
            scheduler_name: spec.scheduler_name,
            node_name: spec.node_name,
            priority: spec.priority,
            preemption_policy: spec.preemption_policy,
            node_selector: spec.node_selector,
            tolerations: spec.tolerations,
            containers: spec.containers,
            init_containers: spec.init_containers,
            overhead: spec.overhead,
            resources: spec.resources,
            scheduling_gates: spec.scheduling_gates,
            affinity: spec.affinity,
            topology_spread_constraints: spec.topology_spread_constraints,
            resource_claims: spec.resource_claims,
            scheduling_group: spec.scheduling_group.map(is_there),
            workload_ref: spec.workload_ref.map(is_there),
            volumes: spec.volumes.into_iter().map(Into::into).collect(),
            host_network: spec.host_network,
            host_users: spec.host_users,
            active_deadline_seconds: spec.active_deadline_seconds,
            termination_grace_period_seconds: spec.termination_grace_period_seconds,
        }
    }
}

/// A message that is there, whatever it says.
#[derive(Clone, Copy, PartialEq, Message)]
struct Present {}
