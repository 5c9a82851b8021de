//! The affinity that the profile adds, then the Pod's own.

use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let node = &trial.node.node;
    let added = trial.rules.added_affinity.required.as_ref();
    if added.is_some_and(|selector| !selector.matches(&node.name, &node.labels)) {
        return vec![Reason::ENFORCED_NODE_AFFINITY];
    }
    unless(trial.pod.accepts(node), Reason::NODE_AFFINITY)
}
