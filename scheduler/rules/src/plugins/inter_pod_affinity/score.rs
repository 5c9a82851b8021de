//! Preferences between Pods, in both directions, and the required affinity of placed Pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{AffinityTerms, ClusterNode, ClusterPod, PodAffinityTerm};

use super::terms::{existing_term_matches, own_term_matches};
use crate::score::{PluginResult, SCORE_MAX, ScoreContext, Scores};

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    let own = &context.pod.pod_affinity;
    let has_preferences = !own.preferred.is_empty() || !own.anti_preferred.is_empty();
    if context.rules.ignore_preferred_terms_of_existing_pods && !has_preferences {
        return PluginResult::Skipped;
    }
    let mut domains = Domains::new();
    for (other, node) in context.cluster.placed() {
        count(context, other, node, &mut domains);
    }
    if domains.is_empty() {
        return PluginResult::Skipped;
    }
    let here = |node: &&ClusterNode| {
        let labels = node.node.labels.iter();
        let weights =
            labels.filter_map(|(key, value)| domains.get(&(key.clone(), value.clone())).copied());
        weights.fold(0, i64::saturating_add)
    };
    PluginResult::Scored(normalise(context.feasible.iter().map(here).collect()))
}

/// What it weighs to be in a domain, a domain being a label of Nodes and its value.
type Domains = BTreeMap<(Arc<str>, Arc<str>), i64>;

fn count(
    context: &ScoreContext<'_>,
    other: &ClusterPod,
    node: &ClusterNode,
    domains: &mut Domains,
) {
    let ScoreContext { rules, cluster, pod, .. } = context;
    let (own, theirs) = (&pod.pod_affinity, &other.pod_affinity);
    let mut add = |term: &PodAffinityTerm, weight: i64| {
        if let Some(value) = node.node.labels.get(&term.topology_key) {
            let domain = domains.entry((term.topology_key.clone(), value.clone())).or_default();
            *domain = domain.saturating_add(weight);
        }
    };
    for (weighted, sign) in signed(&own.preferred, &own.anti_preferred) {
        if own_term_matches(cluster, &weighted.term, other.namespace(), &other.labels) {
            add(&weighted.term, sign * i64::from(weighted.weight));
        }
    }
    for (weighted, sign) in signed(theirs.preferred.usable(), theirs.anti_preferred.usable()) {
        if existing_term_matches(cluster, &weighted.term, pod) {
            add(&weighted.term, sign * i64::from(weighted.weight));
        }
    }
    if rules.hard_pod_affinity_weight > 0 {
        let required = theirs.required.usable().iter();
        for term in required.filter(|term| existing_term_matches(cluster, term, pod)) {
            add(term, i64::from(rules.hard_pod_affinity_weight));
        }
    }
}

/// Affinity attracts and anti-affinity repels.
fn signed<'a, T>(attracting: &'a [T], repelling: &'a [T]) -> impl Iterator<Item = (&'a T, i64)> {
    let attracting = attracting.iter().map(|term| (term, 1));
    attracting.chain(repelling.iter().map(|term| (term, -1)))
}

/// From the lowest, 0, to the highest, 100; all 0 when they are equal.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler divides as doubles too, and the result is between 0 and 100"
)]
fn normalise(raw: Vec<i64>) -> Scores {
    let highest = raw.iter().copied().max().unwrap_or(0);
    let lowest = raw.iter().copied().min().unwrap_or(0);
    let range = highest.saturating_sub(lowest);
    let share = |score: &i64| {
        if range <= 0 {
            return 0;
        }
        (SCORE_MAX as f64 * (score.saturating_sub(lowest) as f64 / range as f64)) as i64
    };
    Scores { normalised: raw.iter().map(share).collect(), raw }
}
