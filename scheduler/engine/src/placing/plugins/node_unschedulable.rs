use model::{ClusterNode, Effect, SchedulingSpec, Taint};
use rules::{Reason, Rules};

use super::super::NodeFilter;

pub(in crate::placing) fn is_tolerated(scheduling: &SchedulingSpec) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: Effect::NoSchedule,
    };
    scheduling.tolerations.iter().any(|it| it.tolerates(&cordon))
}

pub(in crate::placing) fn rejects(
    filter: &NodeFilter,
    node: &ClusterNode,
    _: &Rules,
) -> Vec<Reason> {
    let passes = !node.node.unschedulable || filter.tolerates_cordon;
    if passes { Vec::new() } else { vec![Reason::NODE_UNSCHEDULABLE] }
}
