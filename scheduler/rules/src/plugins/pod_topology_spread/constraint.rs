//! Topology spread constraints as they bear on one Pod, for the filter and for the score.

use std::sync::Arc;

use model::{
    ClusterNode, ClusterPod, LabelSelector, NodeInclusionPolicy, SelectorError,
    TopologySpreadConstraint, WhenUnsatisfiable,
};

use crate::cluster::Cluster;
use crate::rules::{DefaultSpread, Rules};

/// A constraint with its selector settled.
#[derive(Clone, Debug)]
pub struct Constraint {
    pub max_skew: i64,
    pub topology_key: Arc<str>,
    pub selector: LabelSelector,
    pub min_domains: i64,
    node_affinity_policy: NodeInclusionPolicy,
    node_taints_policy: NodeInclusionPolicy,
}

/// The constraints of this kind: the Pod's own, or the defaults when it has none of any kind.
pub fn constraints(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    kind: WhenUnsatisfiable,
) -> Result<Vec<Constraint>, SelectorError> {
    if !pod.topology_spread.is_empty() {
        let own = pod.topology_spread.iter().filter(|it| it.when_unsatisfiable == kind);
        return own.map(|it| settle(it, it.selector_for(&pod.labels))).collect();
    }
    let siblings = cluster.siblings_of(pod);
    if siblings.is_everything() {
        return Ok(Vec::new());
    }
    let defaults = rules.default_spread.constraints();
    let defaults = defaults.iter().filter(|it| it.when_unsatisfiable == kind);
    defaults.map(|it| settle(it, siblings.clone())).collect()
}

fn settle(
    constraint: &TopologySpreadConstraint,
    selector: LabelSelector,
) -> Result<Constraint, SelectorError> {
    if let Some(why) = constraint.selector.error() {
        return Err(why.clone());
    }
    Ok(Constraint {
        max_skew: i64::from(constraint.max_skew),
        topology_key: constraint.topology_key.clone(),
        selector,
        min_domains: i64::from(constraint.min_domains.unwrap_or(1)),
        node_affinity_policy: constraint.node_affinity_policy,
        node_taints_policy: constraint.node_taints_policy,
    })
}

impl Constraint {
    /// The domain that the Node belongs to.
    pub fn domain_of<'a>(&self, node: &'a ClusterNode) -> Option<&'a Arc<str>> {
        node.node.labels.get(&self.topology_key)
    }

    /// Whether the Node's Pods count. Taints only, not `spec.unschedulable`.
    pub fn includes(&self, pod: &ClusterPod, node: &ClusterNode) -> bool {
        let honors = |policy| policy == NodeInclusionPolicy::Honor;
        (!honors(self.node_affinity_policy) || pod.accepts(&node.node))
            && (!honors(self.node_taints_policy) || pod.tolerates_taints_of(&node.node))
    }

    /// How many Pods on the Node are counted: of the same namespace, not terminating. A selector
    /// `{}` counts none, though it matches the Pod itself.
    pub fn matching_pods(&self, cluster: &Cluster, pod: &ClusterPod, node: &ClusterNode) -> i64 {
        if self.selector.is_everything() {
            return 0;
        }
        let counted = cluster.pods_on(&node.node.name).filter(|other| {
            !other.deletion.is_terminating()
                && other.namespace() == pod.namespace()
                && self.selector.matches(&other.labels)
        });
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    }
}

pub fn has_every_key(node: &ClusterNode, constraints: &[Constraint]) -> bool {
    constraints.iter().all(|constraint| constraint.domain_of(node).is_some())
}

/// Whether a Node without one of the keys is left out of the score. The system's defaults still
/// spread over Nodes that are in no zone.
pub fn score_needs_every_key(rules: &Rules, pod: &ClusterPod) -> bool {
    !pod.topology_spread.is_empty() || rules.default_spread != DefaultSpread::System
}
