//! What the Pods of a Node hold stays within what it can allocate.

use std::sync::Arc;

use model::is_extended_resource;

use crate::node_use::NodeUse;
use crate::reason::Reason;
use crate::rules::Rules;
use crate::trial::Trial;

/// What is not asked for is not checked, but the number of Pods always is.
pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let node = &trial.node.node;
    let used = NodeUse::of(trial.cluster, &node.name, &trial.changes);
    let asked = &trial.pod.requests.asked;
    let mut reasons = Vec::new();
    if used.pods.saturating_add(1) > node.pods_max {
        reasons.push(Reason::TOO_MANY_PODS);
    }
    let always = ["cpu", "memory", "ephemeral-storage"].map(Arc::from);
    let scalar = asked.scalar.keys().filter(|name| !is_ignored(trial.rules, name));
    for name in always.iter().chain(scalar) {
        let wanted = asked.amount(name);
        let has = node.allocatable.amount(name);
        if wanted > 0 && wanted > has.saturating_sub(used.requested.amount(name)) {
            let exceeds_node = wanted > has;
            reasons.push(Reason::Insufficient { resource: name.clone(), exceeds_node });
        }
    }
    reasons
}

fn is_ignored(rules: &Rules, name: &str) -> bool {
    let group = name.split('/').next().unwrap_or(name);
    is_extended_resource(name)
        && (rules.ignored_resources.contains(name) || rules.ignored_resource_groups.contains(group))
}
