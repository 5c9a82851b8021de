use prost::Message;

use super::{Amount, all, amounts};
use crate::wire::container::{WirePort, WireRestartRule};
use crate::wire::{WireContainer, WireContainerStatus, WireResourceLists};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Container {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    image: String,
    #[prost(message, repeated, tag = "6")]
    ports: Vec<ContainerPort>,
    #[prost(message, required, tag = "8")]
    resources: ResourceRequirements,
    #[prost(string, tag = "24")]
    restart_policy: String,
    #[prost(message, repeated, tag = "25")]
    restart_policy_rules: Vec<ContainerRestartRule>,
}

impl From<Container> for WireContainer {
    fn from(container: Container) -> Self {
        Self {
            name: container.name,
            image: container.image,
            resources: container.resources.into(),
            ports: all(container.ports),
            restart_policy: container.restart_policy,
            restart_policy_rules: all(container.restart_policy_rules),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceRequirements {
    #[prost(message, repeated, tag = "2")]
    requests: Vec<Amount>,
}

impl From<ResourceRequirements> for WireResourceLists {
    fn from(resources: ResourceRequirements) -> Self {
        Self { requests: amounts(resources.requests) }
    }
}

#[derive(Clone, PartialEq, Message)]
struct ContainerPort {
    #[prost(int32, tag = "2")]
    host_port: i32,
    #[prost(string, tag = "4")]
    protocol: String,
    #[prost(string, tag = "5")]
    host_ip: String,
}

impl From<ContainerPort> for WirePort {
    fn from(port: ContainerPort) -> Self {
        Self { host_port: port.host_port, host_ip: port.host_ip, protocol: port.protocol }
    }
}

#[derive(Clone, PartialEq, Message)]
struct ContainerRestartRule {
    #[prost(string, tag = "1")]
    action: String,
}

impl From<ContainerRestartRule> for WireRestartRule {
    fn from(rule: ContainerRestartRule) -> Self {
        Self { action: rule.action }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStatus {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "10")]
    allocated_resources: Vec<Amount>,
    #[prost(message, optional, tag = "11")]
    resources: Option<ResourceRequirements>,
}

impl From<ContainerStatus> for WireContainerStatus {
    fn from(status: ContainerStatus) -> Self {
        Self {
            name: status.name,
            allocated_resources: amounts(status.allocated_resources),
            resources: status.resources.map(WireResourceLists::from),
        }
    }
}
