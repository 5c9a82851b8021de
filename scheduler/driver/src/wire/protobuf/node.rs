use prost::Message;

use super::meta::NodeMeta;
use super::{Amount, all, amounts};
use crate::wire::node::{WireNodeSpec, WireNodeStatus};
use crate::wire::{WireNode, WireNodeImage, WireTaint};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(message, required, tag = "1")]
    metadata: NodeMeta,
    #[prost(message, required, tag = "2")]
    spec: NodeSpec,
    #[prost(message, required, tag = "3")]
    status: NodeStatus,
}

impl From<Node> for WireNode {
    fn from(node: Node) -> Self {
        Self { metadata: node.metadata.into(), spec: node.spec.into(), status: node.status.into() }
    }
}

#[derive(Clone, PartialEq, Message)]
struct NodeSpec {
    #[prost(bool, tag = "4")]
    unschedulable: bool,
    #[prost(message, repeated, tag = "5")]
    taints: Vec<Taint>,
}

impl From<NodeSpec> for WireNodeSpec {
    fn from(spec: NodeSpec) -> Self {
        Self { unschedulable: spec.unschedulable, taints: all(spec.taints) }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Taint {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
    #[prost(string, tag = "3")]
    effect: String,
}

impl From<Taint> for WireTaint {
    fn from(taint: Taint) -> Self {
        Self { key: taint.key, value: taint.value, effect: taint.effect }
    }
}

#[derive(Clone, PartialEq, Message)]
struct NodeStatus {
    #[prost(message, repeated, tag = "2")]
    allocatable: Vec<Amount>,
    #[prost(message, repeated, tag = "8")]
    images: Vec<ContainerImage>,
    #[prost(string, repeated, tag = "14")]
    declared_features: Vec<String>,
}

impl From<NodeStatus> for WireNodeStatus {
    fn from(status: NodeStatus) -> Self {
        Self {
            allocatable: amounts(status.allocatable),
            images: all(status.images),
            declared_features: status.declared_features,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct ContainerImage {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
    #[prost(int64, tag = "2")]
    size_bytes: i64,
}

impl From<ContainerImage> for WireNodeImage {
    fn from(image: ContainerImage) -> Self {
        Self { names: image.names, size_bytes: image.size_bytes }
    }
}
