//! Required affinity and anti-affinity between Pods, in both directions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{AffinityTerms, ClusterNode, ClusterPod, PodAffinityTerm};

use super::terms::{existing_term_matches, own_term_matches};
use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::plugins::Plugin;
use crate::reason::{Reason, unless};
use crate::trial::Trial;

/// Counts the Pods that matter at each domain.
pub(super) fn pre_filter(
    PodContext { cluster, pod, .. }: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    if let Some(why) = pod.pod_affinity.error() {
        let (plugin, why) = (Plugin::InterPodAffinity, why.clone());
        return Err(PreFilterStatus::Rejected(Reason::Unparsable { plugin, why }));
    }
    state.affinity = Counts::of_placed(cluster, pod);
    Ok(())
}

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let own = &trial.pod.pod_affinity;
    let placed = &trial.state.affinity;
    let idle = own.required.is_empty() && own.anti_required.is_empty();
    if idle && placed.placed_anti.is_empty() {
        // kube-scheduler leaves the rule out for such a Pod, also against Pods that come in
        // thought only: the anti-affinity of a nominated Pod goes unseen.
        return Vec::new();
    }
    let mut counts = Cow::Borrowed(placed);
    for (other, sign) in trial.changes.iter().map(|change| change.signed()) {
        counts.to_mut().count(trial.cluster, trial.pod, (other, trial.node), sign);
    }
    if !counts.affinity_holds(trial) {
        return vec![Reason::POD_AFFINITY];
    }
    if !counts.anti_affinity_holds(trial) {
        return vec![Reason::POD_ANTI_AFFINITY];
    }
    unless(counts.placed_anti_affinity_holds(trial), Reason::EXISTING_PODS_ANTI_AFFINITY)
}

/// How many Pods matter at each domain, a domain being a label of Nodes and its value.
type Domains = BTreeMap<(Arc<str>, Arc<str>), i64>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Pods that all affinity terms of the Pod mean together.
    affinity: Domains,
    /// Pods that an anti-affinity term of the Pod means, once for each such term.
    anti: Domains,
    /// Anti-affinity terms of other Pods that mean the Pod.
    placed_anti: Domains,
}

impl Counts {
    fn of_placed(cluster: &Cluster, pod: &ClusterPod) -> Self {
        let mut counts = Self::default();
        let own = &pod.pod_affinity;
        if own.required.is_empty() && own.anti_required.is_empty() {
            for placed in cluster.keeping_away() {
                counts.count(cluster, pod, placed, 1);
            }
        } else {
            for placed in cluster.placed() {
                counts.count(cluster, pod, placed, 1);
            }
        }
        counts
    }

    fn count(
        &mut self,
        cluster: &Cluster,
        pod: &ClusterPod,
        (other, node): (&ClusterPod, &ClusterNode),
        sign: i64,
    ) {
        let own = &pod.pod_affinity;
        if all_terms_match(cluster, &own.required, other) {
            for term in &own.required {
                add(&mut self.affinity, term, node, sign);
            }
        }
        for term in own
            .anti_required
            .iter()
            .filter(|term| own_term_matches(cluster, term, other.namespace(), &other.labels))
        {
            add(&mut self.anti, term, node, sign);
        }
        let theirs = other.pod_affinity.anti_required.usable();
        for term in theirs.iter().filter(|term| existing_term_matches(cluster, term, pod)) {
            add(&mut self.placed_anti, term, node, sign);
        }
    }

    /// The Node carries every key, and a Pod that all terms match is in the same domain for each. The first Pod of a group
    /// is let in anywhere: when no Pod matches, and the Pod matches its own terms.
    fn affinity_holds(&self, trial: &Trial<'_>) -> bool {
        let terms = &trial.pod.pod_affinity.required;
        let domains: Option<Vec<_>> = terms.iter().map(|term| domain(term, trial.node)).collect();
        let Some(domains) = domains else { return false };
        domains.iter().all(|domain| self.affinity.get(domain).is_some_and(|count| *count > 0))
            || self.affinity.is_empty() && all_terms_match(trial.cluster, terms, trial.pod)
    }

    /// A Node without the key is in no domain, so no Pod is near.
    fn anti_affinity_holds(&self, trial: &Trial<'_>) -> bool {
        let terms = trial.pod.pod_affinity.anti_required.iter();
        let mut domains = terms.filter_map(|term| domain(term, trial.node));
        !domains.any(|domain| self.anti.get(&domain).is_some_and(|count| *count > 0))
    }

    fn placed_anti_affinity_holds(&self, trial: &Trial<'_>) -> bool {
        let labels = &trial.node.node.labels;
        let mut avoided = self.placed_anti.iter().filter(|(_, count)| **count > 0);
        !avoided.any(|((key, value), _)| labels.get(key) == Some(value))
    }
}

fn all_terms_match(cluster: &Cluster, terms: &[PodAffinityTerm], other: &ClusterPod) -> bool {
    !terms.is_empty()
        && terms
            .iter()
            .all(|term| own_term_matches(cluster, term, other.namespace(), &other.labels))
}

fn domain(term: &PodAffinityTerm, node: &ClusterNode) -> Option<(Arc<str>, Arc<str>)> {
    let value = node.node.labels.get(&term.topology_key)?;
    Some((term.topology_key.clone(), value.clone()))
}

/// A domain where nothing is left is forgotten: "no domain at all" has a meaning above.
fn add(domains: &mut Domains, term: &PodAffinityTerm, node: &ClusterNode, sign: i64) {
    let Some(domain) = domain(term, node) else { return };
    let count = domains.entry(domain.clone()).or_default();
    *count += sign;
    if *count == 0 {
        domains.remove(&domain);
    }
}
