//! Where a Pod can go, and where best.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterNode, ClusterPod, NodeName, WhenUnsatisfiable};

use crate::cluster::Cluster;
use crate::cycle::{NotFiltered, PodContext};
use crate::failure::{Failure, FailureCause};
use crate::plugins::constraints;
use crate::reason::Reason;
use crate::rejection::Rejection;
use crate::rules::Rules;
use crate::score::{NodeScore, score};
use crate::trial::TrialChange;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Placed(Placement),
    Rejected(Rejection),
    /// The Pod cannot be understood: kube-scheduler ends the attempt with an error.
    Failed(Failure),
}

/// Where the Pod can go. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub feasible: BTreeSet<NodeName>,
    /// Empty when there is only one Node to choose: then nothing is scored.
    pub scores: BTreeMap<NodeName, NodeScore>,
    /// The Nodes with the highest total. kube-scheduler takes any of them.
    pub best: BTreeSet<NodeName>,
    /// The Nodes that cannot take it, with why. Empty when the Node that was nominated can: then
    /// no other is tried.
    pub rejected: BTreeMap<NodeName, Vec<Reason>>,
}

pub fn decide(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Decision {
    decide_among(rules, cluster, pod, usize::MAX)
}

/// The same, but no more than the first so many Nodes are tried. What counts over the whole
/// cluster still does.
pub fn decide_among(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    nodes_max: usize,
) -> Decision {
    if cluster.nodes.is_empty() {
        return Decision::Rejected(Rejection::of_nodes(BTreeMap::new()));
    }
    let context = PodContext { rules, cluster, pod };
    let state = match context.pre_filter() {
        Ok(state) => state,
        Err(NotFiltered::Rejected(reason)) => {
            return Decision::Rejected(Rejection::of_pod(reason, cluster.nodes.keys()));
        }
        Err(NotFiltered::Failed(failure)) => return Decision::Failed(failure),
    };
    let try_on = |node| context.on(node, &state).rejections();
    let mut rejected = BTreeMap::new();
    // The Node that was nominated is tried first, whatever the Pod's affinity names, and taken
    // without a look at the others.
    let nominated = pod.nominated_node.as_ref().and_then(|name| cluster.nodes.get(name));
    let mut nominated_node_rejected_by = None;
    if let Some(node) = nominated {
        let reasons = try_on(node);
        if reasons.is_empty() {
            return place(context, [node.node.name.clone()].into(), BTreeMap::new());
        }
        // An error at this Node alone ends nothing: the others are tried, and it is once more.
        if Failure::among(&reasons).is_none() {
            nominated_node_rejected_by = reasons.first().map(Reason::plugin);
            rejected.insert(node.node.name.clone(), reasons);
        }
    }
    let mut feasible = BTreeSet::new();
    for (name, node) in cluster.nodes.iter().take(nodes_max) {
        if !state.names(name) {
            let not_named = Reason::NotNamed { nominated_node_rejected_by };
            rejected.entry(name.clone()).or_insert_with(|| vec![not_named]);
            continue;
        }
        let reasons = try_on(node);
        if reasons.is_empty() {
            feasible.insert(name.clone());
        } else {
            rejected.insert(name.clone(), reasons);
        }
    }
    if let Some(failure) = Failure::among(rejected.values().flatten()) {
        return Decision::Failed(failure);
    }
    if feasible.is_empty() {
        return Decision::Rejected(Rejection::of_nodes(rejected));
    }
    place(context, feasible, rejected)
}

/// Why the Pod is rejected on every Node, before any is tried.
pub fn rejected_as_whole(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Option<Reason> {
    match (PodContext { rules, cluster, pod }).pre_filter() {
        Err(NotFiltered::Rejected(reason)) => Some(reason),
        Ok(_) | Err(NotFiltered::Failed(_)) => None,
    }
}

/// The best Nodes for a Pod that can only be on one of these. `None`: it cannot, or the attempt fails at one of them.
pub fn best_among<'a>(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    nodes: impl Iterator<Item = &'a NodeName>,
) -> Option<BTreeSet<NodeName>> {
    let context = PodContext { rules, cluster, pod };
    let state = context.pre_filter().ok()?;
    let mut feasible = BTreeSet::new();
    for node in nodes.filter(|name| state.names(name)) {
        let reasons = context.on(cluster.nodes.get(node)?, &state).rejections();
        if Failure::among(&reasons).is_some() {
            return None;
        }
        if reasons.is_empty() {
            feasible.insert(node.clone());
        }
    }
    if feasible.is_empty() {
        return None;
    }
    match place(context, feasible, BTreeMap::new()) {
        Decision::Placed(placement) => Some(placement.best),
        Decision::Rejected(_) | Decision::Failed(_) => None,
    }
}

/// Whether the Pod would be placed: the first Node that takes it is enough, unless its preferences cannot be
/// scored.
pub fn fits_somewhere(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> bool {
    let soft = constraints(rules, cluster, pod, WhenUnsatisfiable::ScheduleAnyway);
    // Volumes may end the attempt at any Node.
    let may_fail = !pod.volumes.is_empty() || pod.node_affinity.preference_error().is_some();
    if soft.is_err() || may_fail {
        return matches!(decide(rules, cluster, pod), Decision::Placed(_));
    }
    let context = PodContext { rules, cluster, pod };
    let Ok(state) = context.pre_filter() else { return false };
    let mut nodes = cluster.nodes.iter().filter(|(name, _)| state.names(name));
    nodes.any(|(_, node)| context.on(node, &state).rejections().is_empty())
}

/// Why the Pod cannot be on this Node; empty when it can. Pods of at least its priority that
/// are nominated for the Node count as if they were there.
pub fn filter(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    node: &ClusterNode,
) -> Vec<Reason> {
    filter_without(rules, cluster, pod, node, &[])
}

/// The same, were some Pods of the Node gone.
pub fn filter_without(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    node: &ClusterNode,
    gone: &[&ClusterPod],
) -> Vec<Reason> {
    let context = PodContext { rules, cluster, pod };
    match context.pre_filter() {
        Err(NotFiltered::Rejected(reason)) => vec![reason],
        Err(NotFiltered::Failed(failure)) => vec![failure.into()],
        Ok(state) if !state.names(&node.node.name) => {
            vec![Reason::NotNamed { nominated_node_rejected_by: None }]
        }
        Ok(state) => {
            let mut trial = context.on(node, &state);
            trial.changes.extend(gone.iter().map(|gone| TrialChange::Remove(gone)));
            trial.rejections()
        }
    }
}

fn place(
    PodContext { rules, cluster, pod }: PodContext<'_>,
    feasible: BTreeSet<NodeName>,
    rejected: BTreeMap<NodeName, Vec<Reason>>,
) -> Decision {
    if feasible.len() == 1 {
        let best = feasible.clone();
        return Decision::Placed(Placement { feasible, scores: BTreeMap::new(), best, rejected });
    }
    let scores = match score(rules, cluster, pod, &feasible) {
        Ok(scores) => scores,
        Err(error) => {
            let why = FailureCause::Selector(error.why);
            return Decision::Failed(Failure { plugin: error.plugin, why });
        }
    };
    let highest = scores.values().map(|score| score.total).max();
    let best = scores.iter().filter(|(_, score)| Some(score.total) == highest);
    let best = best.map(|(name, _)| name.clone()).collect();
    Decision::Placed(Placement { feasible, scores, best, rejected })
}
