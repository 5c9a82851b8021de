//! A cordoned Node takes only Pods that tolerate being there.

use model::{Effect, Taint};

use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: Effect::NoSchedule,
    };
    let tolerated = trial.pod.tolerations.iter().any(|toleration| toleration.tolerates(&cordon));
    unless(!trial.node.node.unschedulable || tolerated, Reason::NODE_UNSCHEDULABLE)
}
