//! A cordoned Node takes only Pods that tolerate being there.

use model::{Effect, Taint};

use super::{Ask, Candidate, NodeReason};

pub(super) fn filter(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    if !candidate.node.unschedulable {
        return;
    }
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: Effect::NoSchedule,
    };
    if !ask.shape.tolerations.iter().any(|toleration| toleration.tolerates(&cordon)) {
        reasons.push(NodeReason::Unschedulable);
    }
}
