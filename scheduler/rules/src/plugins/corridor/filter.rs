//! Rejects Nodes that the node selector of a referenced Corridor or MemoryBundle does not match.

use crate::reason::Reason;
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let beyond = trial.pod.reach.iter().filter(|it| !trial.node.node.matches(&it.node_selector));
    beyond.map(|it| Reason::OutOfReach { object: it.object.clone() }).collect()
}
