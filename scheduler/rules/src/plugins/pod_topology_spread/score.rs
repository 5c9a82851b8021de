//! The constraints with `whenUnsatisfiable: ScheduleAnyway`, and the defaults.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::ClusterNode;
use model::WhenUnsatisfiable::ScheduleAnyway;

use super::constraint::{Constraint, constraints, has_every_key, score_needs_every_key};
use crate::rules::HOSTNAME;
use crate::score::{PluginResult, SCORE_MAX, ScoreContext, Scores, scaled};

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    let ScoreContext { rules, cluster, pod, feasible } = context;
    let constraints = match constraints(rules, cluster, pod, ScheduleAnyway) {
        Ok(constraints) => constraints,
        Err(why) => return PluginResult::Unparsable(why),
    };
    if constraints.is_empty() {
        return PluginResult::Skipped;
    }
    let needs_every_key = score_needs_every_key(rules, pod);
    let counts = |node: &ClusterNode| !needs_every_key || has_every_key(node, &constraints);
    let competing: Vec<&ClusterNode> =
        feasible.iter().copied().filter(|node| counts(node)).collect();
    let domains: Vec<DomainCounts> = constraints
        .iter()
        .map(|constraint| DomainCounts::count(context, constraint, &competing, counts))
        .collect();
    let raw: Vec<Option<i64>> = feasible
        .iter()
        .map(|node| counts(node).then(|| node_score(context, &constraints, &domains, node)))
        .collect();
    PluginResult::Scored(normalise(&raw))
}

/// Matching Pods in each domain that a competing Node is in. Domains of Nodes that do not compete
/// are left out. A Node without the key counts as the domain "".
struct DomainCounts {
    matching: BTreeMap<Arc<str>, i64>,
    weight: f64,
}

impl DomainCounts {
    fn count(
        context: &ScoreContext<'_>,
        constraint: &Constraint,
        competing: &[&ClusterNode],
        counts: impl Fn(&ClusterNode) -> bool,
    ) -> Self {
        if constraint.topology_key.as_ref() == HOSTNAME {
            // Each Node is a domain of its own and is counted when it is scored.
            return Self { matching: BTreeMap::new(), weight: weight(competing.len()) };
        }
        let domain = |node| constraint.domain_of(node).cloned().unwrap_or_else(|| "".into());
        let mut matching: BTreeMap<Arc<str>, i64> =
            competing.iter().map(|node| (domain(node), 0)).collect();
        let all = context.cluster.nodes.values();
        for node in all.filter(|node| counts(node) && constraint.includes(context.pod, node)) {
            if let Some(sum) = matching.get_mut(&domain(node)) {
                *sum += constraint.matching_pods(context.cluster, context.pod, node);
            }
        }
        Self { weight: weight(matching.len()), matching }
    }
}

/// So that domains of which there are few are not outweighed by those of which there are many.
#[expect(clippy::cast_precision_loss, reason = "kube-scheduler takes this logarithm too")]
fn weight(domains: usize) -> f64 {
    (domains as f64 + 2.0).ln()
}

/// Lower is better: the Pods already near, weighed, with the skew that does not matter.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler sums as doubles too; the cast saturates"
)]
fn node_score(
    context: &ScoreContext<'_>,
    constraints: &[Constraint],
    domains: &[DomainCounts],
    node: &ClusterNode,
) -> i64 {
    let mut score = 0.0;
    for (constraint, domains) in constraints.iter().zip(domains) {
        let Some(domain) = constraint.domain_of(node) else { continue };
        let matching = if constraint.topology_key.as_ref() == HOSTNAME {
            constraint.matching_pods(context.cluster, context.pod, node)
        } else {
            domains.matching.get(domain).copied().unwrap_or(0)
        };
        score += matching as f64 * domains.weight + (constraint.max_skew - 1) as f64;
    }
    score.round() as i64
}

/// The fewest get 100; Nodes that do not compete get 0.
fn normalise(raw: &[Option<i64>]) -> Scores {
    let highest = raw.iter().flatten().copied().max().unwrap_or(0).max(0);
    let lowest = raw.iter().flatten().copied().min().unwrap_or(0);
    let normalised = |score: &Option<i64>| match score {
        None => 0,
        Some(_) if highest == 0 => SCORE_MAX,
        Some(score) => scaled(highest.saturating_add(lowest).saturating_sub(*score), highest),
    };
    Scores {
        normalised: raw.iter().map(normalised).collect(),
        raw: raw.iter().map(|score| score.unwrap_or(0)).collect(),
    }
}
