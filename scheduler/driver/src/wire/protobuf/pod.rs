use prost::Message;
use serde::de::IgnoredAny;

use super::affinity::{Affinity, TopologySpreadConstraint};
use super::container::{Container, ContainerStatus, ResourceRequirements};
use super::meta::{PodMeta, Time};
use super::volume::Volume;
use super::{Amount, Pair, all, amounts, texts};
use crate::wire::pod::{WireCondition, WireSchedulingGate};
use crate::wire::{WirePod, WirePodSpec, WirePodStatus, WireResourceLists, WireToleration};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Pod {
    #[prost(message, required, tag = "1")]
    metadata: PodMeta,
    #[prost(message, required, tag = "2")]
    spec: PodSpec,
    #[prost(message, required, tag = "3")]
    status: PodStatus,
}

impl From<Pod> for WirePod {
    fn from(pod: Pod) -> Self {
        Self { metadata: pod.metadata.into(), spec: pod.spec.into(), status: pod.status.into() }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PodSpec {
    #[prost(message, repeated, tag = "1")]
    volumes: Vec<Volume>,
    #[prost(message, repeated, tag = "2")]
    containers: Vec<Container>,
    #[prost(int64, optional, tag = "4")]
    termination_grace_period_seconds: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    active_deadline_seconds: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    node_selector: Vec<Pair>,
    #[prost(string, tag = "10")]
    node_name: String,
    #[prost(bool, tag = "11")]
    host_network: bool,
    #[prost(message, required, tag = "18")]
    affinity: Affinity,
    #[prost(string, tag = "19")]
    scheduler_name: String,
    #[prost(message, repeated, tag = "20")]
    init_containers: Vec<Container>,
    #[prost(message, repeated, tag = "22")]
    tolerations: Vec<Toleration>,
    #[prost(int32, optional, tag = "25")]
    priority: Option<i32>,
    #[prost(string, tag = "31")]
    preemption_policy: String,
    #[prost(message, repeated, tag = "32")]
    overhead: Vec<Amount>,
    #[prost(message, repeated, tag = "33")]
    topology_spread_constraints: Vec<TopologySpreadConstraint>,
    #[prost(bool, optional, tag = "37")]
    host_users: Option<bool>,
    #[prost(message, repeated, tag = "38")]
    scheduling_gates: Vec<PodSchedulingGate>,
    #[prost(message, repeated, tag = "39")]
    resource_claims: Vec<Present>,
    #[prost(message, required, tag = "40")]
    resources: ResourceRequirements,
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
            node_selector: texts(spec.node_selector),
            tolerations: all(spec.tolerations),
            containers: all(spec.containers),
            init_containers: all(spec.init_containers),
            overhead: amounts(spec.overhead),
            resources: spec.resources.into(),
            scheduling_gates: all(spec.scheduling_gates),
            affinity: spec.affinity.into(),
            topology_spread_constraints: all(spec.topology_spread_constraints),
            resource_claims: spec.resource_claims.into_iter().map(is_there).collect(),
            scheduling_group: spec.scheduling_group.map(is_there),
            workload_ref: spec.workload_ref.map(is_there),
            volumes: all(spec.volumes),
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

#[derive(Clone, PartialEq, Message)]
struct Toleration {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    operator: String,
    #[prost(string, tag = "3")]
    value: String,
    #[prost(string, tag = "4")]
    effect: String,
}

impl From<Toleration> for WireToleration {
    fn from(toleration: Toleration) -> Self {
        Self {
            key: toleration.key,
            operator: toleration.operator,
            value: toleration.value,
            effect: toleration.effect,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PodSchedulingGate {
    #[prost(string, tag = "1")]
    name: String,
}

impl From<PodSchedulingGate> for WireSchedulingGate {
    fn from(gate: PodSchedulingGate) -> Self {
        Self { name: gate.name }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PodStatus {
    #[prost(string, tag = "1")]
    phase: String,
    #[prost(message, repeated, tag = "2")]
    conditions: Vec<PodCondition>,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(message, optional, tag = "7")]
    start_time: Option<Time>,
    #[prost(message, repeated, tag = "8")]
    container_statuses: Vec<ContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    init_container_statuses: Vec<ContainerStatus>,
    #[prost(string, tag = "11")]
    nominated_node_name: String,
    #[prost(message, repeated, tag = "19")]
    allocated_resources: Vec<Amount>,
    #[prost(message, optional, tag = "20")]
    resources: Option<ResourceRequirements>,
}

impl From<PodStatus> for WirePodStatus {
    fn from(status: PodStatus) -> Self {
        Self {
            phase: status.phase,
            reason: status.reason,
            message: status.message,
            nominated_node_name: status.nominated_node_name,
            start_time: status.start_time.and_then(Time::into_wire),
            conditions: all(status.conditions),
            container_statuses: all(status.container_statuses),
            init_container_statuses: all(status.init_container_statuses),
            resources: status.resources.map(WireResourceLists::from),
            allocated_resources: amounts(status.allocated_resources),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PodCondition {
    #[prost(string, tag = "1")]
    condition_type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(string, tag = "6")]
    message: String,
}

impl From<PodCondition> for WireCondition {
    fn from(condition: PodCondition) -> Self {
        Self {
            condition_type: condition.condition_type,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
        }
    }
}
