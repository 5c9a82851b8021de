//! The constraints with `whenUnsatisfiable: DoNotSchedule`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::WhenUnsatisfiable::DoNotSchedule;

use crate::reason::Reason;
use crate::spread::{Constraint, constraints, has_every_key};
use crate::trial::Trial;

/// Matching Pods by place. A place that counts but is empty is there with 0.
type Domains = BTreeMap<Arc<str>, i64>;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    // What cannot be parsed fails the Pod before any Node is tried.
    let constraints = constraints(trial.rules, trial.cluster, trial.pod, DoNotSchedule);
    let constraints = constraints.unwrap_or_default();
    for constraint in &constraints {
        let Some(here) = constraint.domain_of(trial.node) else {
            return vec![Reason::TopologySpreadLabelMissing];
        };
        let domains = domains(trial, constraint, &constraints);
        let places = i64::try_from(domains.len()).unwrap_or(i64::MAX);
        let fewest = domains.values().copied().min().unwrap_or(0);
        let fewest = if places < constraint.min_domains { 0 } else { fewest };
        let myself = i64::from(constraint.selector.matches(&trial.pod.labels));
        let matching = domains.get(here).copied().unwrap_or(0);
        let skew = matching.saturating_add(myself).saturating_sub(fewest);
        if skew > constraint.max_skew {
            return vec![Reason::TopologySpread];
        }
    }
    Vec::new()
}

/// Only Nodes that carry the keys of all constraints count.
fn domains(trial: &Trial<'_>, constraint: &Constraint, all: &[Constraint]) -> Domains {
    let counts = |node| has_every_key(node, all) && constraint.includes(trial.pod, node);
    let mut domains = Domains::new();
    for node in trial.cluster.nodes.values().filter(|node| counts(node)) {
        if let Some(domain) = constraint.domain_of(node) {
            *domains.entry(domain.clone()).or_default() +=
                constraint.matching_pods(trial.cluster, trial.pod, node);
        }
    }
    if let (true, Some(here)) = (counts(trial.node), constraint.domain_of(trial.node)) {
        *domains.entry(here.clone()).or_default() += changed_by(trial, constraint);
    }
    domains
}

/// kube-scheduler keeps this count by its own rule: Pods that come and go in thought count also
/// when they are terminating, and when the selector is `{}`.
fn changed_by(trial: &Trial<'_>, constraint: &Constraint) -> i64 {
    let changes = trial.changes.iter().map(|change| change.signed());
    let counted = changes.filter(|(other, _)| {
        other.namespace() == trial.pod.namespace() && constraint.selector.matches(&other.labels)
    });
    counted.map(|(_, sign)| sign).sum()
}
