use prost::Message;

use super::meta::Meta;
use crate::wire::WireNode;
use crate::wire::meta::labelled;
use crate::wire::node::{WireNodeSpec, WireNodeStatus};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(message, required, tag = "1")]
    metadata: Meta,
    #[prost(message, required, tag = "2")]
    spec: WireNodeSpec,
    #[prost(message, required, tag = "3")]
    status: WireNodeStatus,
}

impl From<Node> for WireNode {
    fn from(node: Node) -> Self {
        Self { metadata: labelled(node.metadata.into()), spec: node.spec, status: node.status }
    }
}
