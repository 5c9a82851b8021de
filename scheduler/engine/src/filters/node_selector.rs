//! `spec.nodeSelector` of the Pod.

use super::{Ask, Candidate, NodeReason};

pub(super) fn filter(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    if !candidate.node.matches(&ask.shape.node_selector) {
        reasons.push(NodeReason::SelectorMismatch);
    }
}
