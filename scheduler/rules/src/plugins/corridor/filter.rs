//! Where the light of a Corridor or the memory of a MemoryBundle reaches. Ours alone:
//! kube-scheduler has no such rule.

use crate::reason::Reason;
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let beyond = trial.pod.reach.iter().filter(|it| !trial.node.node.matches(&it.node_selector));
    beyond.map(|it| Reason::OutOfReach { object: it.object.clone() }).collect()
}
