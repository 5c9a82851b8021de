//! `spec.nodeSelector` of the Corridor: where its light reaches.

use super::{Ask, Candidate, NodeReason};

pub(super) fn filter(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    if let Some(corridor) = ask.corridor
        && !candidate.node.matches(&corridor.node_selector)
    {
        reasons.push(NodeReason::CorridorNodes(corridor.key.clone()));
    }
}
