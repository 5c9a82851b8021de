//! Taints that repel (NoSchedule, NoExecute) must all be tolerated.

use model::first_untolerated;

use super::{Ask, Candidate, NodeReason};

pub(super) fn filter(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    if first_untolerated(&candidate.node.taints, &ask.shape.tolerations).is_some() {
        reasons.push(NodeReason::UntoleratedTaint);
    }
}
