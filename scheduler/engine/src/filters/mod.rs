//! The rules that a Node must pass. To add one: a file here and a line in [`FILTERS`].

mod node_selector;
mod object_nodes;
mod resources;
mod taints;
mod unschedulable;

use std::fmt;
use std::sync::Arc;

use model::{Node, ObjectRef, Reservable, Shape};

use crate::ledger::NodeUse;

/// What a Pod asks of a Node, with its references resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub shape: &'a Shape,
    pub objects: &'a [&'a Reservable],
}

/// A Node and what is already used of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub node: &'a Node,
    pub used: &'a NodeUse,
}

/// Adds every reason for which this rule rejects the Node; none when it passes.
type Filter = fn(Ask<'_>, Candidate<'_>, &mut Vec<NodeReason>);

/// In the order of kube-scheduler: the first rule that rejects a Node supplies its reasons.
const FILTERS: [Filter; 5] = [
    unschedulable::filter,
    taints::filter,
    node_selector::filter,
    object_nodes::filter,
    resources::filter,
];

/// The reasons for which the Node cannot take the Pod; empty when it can.
pub(crate) fn rejections(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    reasons.clear();
    for filter in FILTERS {
        filter(ask, candidate, reasons);
        if !reasons.is_empty() {
            return;
        }
    }
}

/// Why a Node cannot take a Pod, in the words of kube-scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeReason {
    Unschedulable,
    UntoleratedTaint,
    SelectorMismatch,
    ObjectNodes(ObjectRef),
    TooManyPods,
    Insufficient(Arc<str>),
}

impl NodeReason {
    /// The plugin of kube-scheduler that speaks this way.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::Unschedulable => "NodeUnschedulable",
            Self::UntoleratedTaint => "TaintToleration",
            Self::SelectorMismatch => "NodeAffinity",
            Self::ObjectNodes(_) => "Corridor",
            Self::TooManyPods | Self::Insufficient(_) => "NodeResourcesFit",
        }
    }
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::UntoleratedTaint => f.write_str("node(s) had untolerated taint(s)"),
            Self::SelectorMismatch => {
                f.write_str("node(s) didn't match Pod's node affinity/selector")
            }
            Self::ObjectNodes(object) => {
                write!(f, "node(s) didn't match the node selector of {object}")
            }
            Self::TooManyPods => f.write_str("Too many pods"),
            Self::Insufficient(resource) => write!(f, "Insufficient {resource}"),
        }
    }
}
