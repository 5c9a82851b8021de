//! The constraints with `whenUnsatisfiable: DoNotSchedule`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::WhenUnsatisfiable::DoNotSchedule;
use model::{ClusterNode, ClusterPod};

use super::constraint::{Constraint, constraints, has_every_key};
use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::failure::FailureCause;
use crate::reason::Reason;
use crate::trial::Trial;

/// Matching Pods by domain. A domain that counts but is empty is there with 0.
type Domains = BTreeMap<Arc<str>, i64>;

/// The constraints of a Pod, each with what it counts over the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    all: Vec<Constraint>,
    counted: Vec<Counted>,
}

#[derive(Clone, Debug)]
struct Counted {
    domains: Domains,
    /// Of any domain, while no Pod is hypothetically added or removed.
    fewest: i64,
}

impl Counted {
    fn new(domains: Domains) -> Self {
        Self { fewest: domains.values().copied().min().unwrap_or(0), domains }
    }
}

/// Fails when the constraints cannot be parsed.
pub(super) fn pre_filter(
    PodContext { rules, cluster, pod }: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    let all = constraints(rules, cluster, pod, DoNotSchedule)
        .map_err(|why| PreFilterStatus::Failed(FailureCause::Selector(why)))?;
    let count = |constraint| Counted::new(domains(cluster, pod, constraint, &all));
    state.spread = Spread { counted: all.iter().map(count).collect(), all };
    Ok(())
}

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let Spread { all, counted } = &trial.state.spread;
    for (constraint, counted) in all.iter().zip(counted) {
        let Some(here) = constraint.domain_of(trial.node) else {
            return vec![Reason::TOPOLOGY_SPREAD_LABEL_MISSING];
        };
        let mut counted = Cow::Borrowed(counted);
        if !trial.changes.is_empty() && counts(trial.pod, trial.node, constraint, all) {
            let mut domains = counted.into_owned().domains;
            *domains.entry(here.clone()).or_default() += changed_by(trial, constraint);
            counted = Cow::Owned(Counted::new(domains));
        }
        let domains = i64::try_from(counted.domains.len()).unwrap_or(i64::MAX);
        let fewest = if domains < constraint.min_domains { 0 } else { counted.fewest };
        let myself = i64::from(constraint.selector.matches(&trial.pod.labels));
        let matching = counted.domains.get(here).copied().unwrap_or(0);
        let skew = matching.saturating_add(myself).saturating_sub(fewest);
        if skew > constraint.max_skew {
            return vec![Reason::TOPOLOGY_SPREAD];
        }
    }
    Vec::new()
}

/// Only Nodes that carry the keys of all constraints count.
fn counts(
    pod: &ClusterPod,
    node: &ClusterNode,
    constraint: &Constraint,
    all: &[Constraint],
) -> bool {
    has_every_key(node, all) && constraint.includes(pod, node)
}

fn domains(
    cluster: &Cluster,
    pod: &ClusterPod,
    constraint: &Constraint,
    all: &[Constraint],
) -> Domains {
    let mut domains = Domains::new();
    for node in cluster.nodes.values().filter(|node| counts(pod, node, constraint, all)) {
        if let Some(domain) = constraint.domain_of(node) {
            *domains.entry(domain.clone()).or_default() +=
                constraint.matching_pods(cluster, pod, node);
        }
    }
    domains
}

/// kube-scheduler keeps this count by its own rule: Pods that are hypothetically added and removed count also
/// when they are terminating, and when the selector is `{}`.
fn changed_by(trial: &Trial<'_>, constraint: &Constraint) -> i64 {
    let changes = trial.changes.iter().map(|change| change.signed());
    let counted = changes.filter(|(other, _)| {
        other.namespace() == trial.pod.namespace() && constraint.selector.matches(&other.labels)
    });
    counted.map(|(_, sign)| sign).sum()
}
