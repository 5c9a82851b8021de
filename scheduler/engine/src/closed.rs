//! Nodes on which nothing more is put, because a Pod there cannot be read and what it uses is not known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use model::{ClusterNode, NodeName, PodUid};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClosedNodes {
    because_of: BTreeMap<PodUid, NodeName>,
    /// The closed ones as they are in truth.
    open: BTreeMap<NodeName, ClusterNode>,
}

impl ClosedNodes {
    /// Beside what it was closed for before. Call [`Self::shown`] for the Node, if it is known.
    pub fn close(&mut self, pod: PodUid, node: NodeName) {
        self.because_of.insert(pod, node);
    }

    /// The Pod can be read, or is gone. The Node as it is in truth, if nothing else keeps it closed.
    pub fn reopen(&mut self, pod: &PodUid) -> Option<ClusterNode> {
        let node = self.because_of.remove(pod)?;
        if self.is_closed(&node) { None } else { self.open.remove(&node) }
    }

    fn is_closed(&self, node: &NodeName) -> bool {
        self.because_of.values().any(|closed| closed == node)
    }

    /// The Node as the rules see it. Every Pod takes a place: without one there is no way around it,
    /// as there would be for a taint.
    pub fn shown(&mut self, mut node: ClusterNode) -> ClusterNode {
        if !self.because_of.is_empty() && self.is_closed(&node.node.name) {
            self.open.insert(node.node.name.clone(), node.clone());
            node.node.pods_max = 0;
        }
        node
    }

    pub fn node_gone(&mut self, node: &NodeName) {
        self.open.remove(node);
    }
}
