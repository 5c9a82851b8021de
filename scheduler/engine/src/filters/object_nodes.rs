//! `spec.nodeSelector` of a Corridor or MemoryBundle: where its light or its memory reaches.

use super::{Ask, Candidate, NodeReason};

pub(super) fn filter(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    let out_of_reach = ask.objects.iter().filter(|it| !candidate.node.matches(&it.node_selector));
    reasons.extend(out_of_reach.map(|it| NodeReason::ObjectNodes(it.object.clone())));
}
