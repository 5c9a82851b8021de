//! Whether a change of the cluster may help a rejected Pod.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use model::{ClusterNode, ClusterPod, NodeName};

use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext};
use crate::plugins::{candidate, may_preempt};
use crate::reason::Reason;
use crate::rules::Rules;

/// Whether a Pod that was rejected in `before` is worth another attempt in `after`: a Node takes
/// it that did not, or preemption can make room on a Node where it could not.
pub fn rejection_may_have_changed(
    rules: &Rules,
    before: &Cluster,
    after: &Cluster,
    pod: &ClusterPod,
) -> bool {
    Chances::of(rules, after, pod).exceed(&Chances::of(rules, before, pod))
}

/// The Nodes that take a Pod, and those that would after a preemption. Each Node by itself: what
/// becomes of one says nothing about another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chances {
    pub feasible: BTreeSet<NodeName>,
    pub preemptible: BTreeSet<NodeName>,
}

impl Chances {
    /// None for a Pod that cannot be understood.
    pub fn of(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Self {
        let mut chances = Self::default();
        chances.look_at(rules, cluster, pod, cluster.nodes.values());
        chances
    }

    /// Those on these Nodes, which need not exist any more.
    pub fn on<'a>(
        rules: &Rules,
        cluster: &Cluster,
        pod: &ClusterPod,
        nodes: impl IntoIterator<Item = &'a NodeName>,
    ) -> Self {
        let mut chances = Self::default();
        let nodes = nodes.into_iter().filter_map(|node| cluster.nodes.get(node));
        chances.look_at(rules, cluster, pod, nodes);
        chances
    }

    /// Whether the Node is among them.
    pub fn are_on(&self, node: &NodeName) -> bool {
        self.feasible.contains(node) || self.preemptible.contains(node)
    }

    /// What has been found out about one Node.
    pub fn set(&mut self, node: &NodeName, is_feasible: bool, is_preemptible: bool) {
        for (nodes, is_in) in
            [(&mut self.feasible, is_feasible), (&mut self.preemptible, is_preemptible)]
        {
            if is_in {
                nodes.insert(node.clone());
            } else {
                nodes.remove(node);
            }
        }
    }

    /// Those that were not among these before.
    #[must_use]
    pub fn without(&self, before: &Self) -> Self {
        Self {
            feasible: self.feasible.difference(&before.feasible).cloned().collect(),
            preemptible: self.preemptible.difference(&before.preemptible).cloned().collect(),
        }
    }

    /// Whether there is a Node among these that was not among those.
    pub fn exceed(&self, before: &Self) -> bool {
        !self.feasible.is_subset(&before.feasible)
            || !self.preemptible.is_subset(&before.preemptible)
    }

    fn look_at<'a>(
        &mut self,
        rules: &'a Rules,
        cluster: &'a Cluster,
        pod: &'a ClusterPod,
        nodes: impl Iterator<Item = &'a ClusterNode>,
    ) {
        let context = PodContext { rules, cluster, pod };
        let Ok(state) = context.pre_filter() else { return };
        let may_preempt = may_preempt(context, &state);
        let nodes = nodes.filter(|node| state.names(&node.node.name));
        self.ask(context, &state, may_preempt, nodes);
    }

    /// Of Nodes that the Pod could mean.
    fn ask<'q, 'n: 'q>(
        &mut self,
        context: PodContext<'q>,
        state: &'q CycleState,
        may_preempt: bool,
        nodes: impl Iterator<Item = &'n ClusterNode>,
    ) {
        for node in nodes {
            let name = &node.node.name;
            let reasons = context.on(node, state).rejections();
            if reasons.is_empty() {
                self.feasible.insert(name.clone());
            } else if !reasons.iter().any(Reason::is_unresolvable)
                && may_preempt
                && candidate(context.on(node, state)).is_ok()
            {
                self.preemptible.insert(name.clone());
            }
        }
    }
}

/// What a nominated Pod has at its Node, and whether it may preempt now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prospect {
    pub is_feasible: bool,
    pub is_preemptible: bool,
    /// Elsewhere, too.
    pub may_preempt: bool,
}

impl Prospect {
    /// None for a Pod that cannot be understood.
    pub fn of(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Self {
        let context = PodContext { rules, cluster, pod };
        let Ok(state) = context.pre_filter() else { return Self::default() };
        let may_preempt = may_preempt(context, &state);
        let nominated = pod.nominated_node.as_ref().filter(|name| state.names(name));
        let mut there = Chances::default();
        there.ask(
            context,
            &state,
            may_preempt,
            nominated.and_then(|it| cluster.nodes.get(it)).into_iter(),
        );
        Self {
            is_feasible: !there.feasible.is_empty(),
            is_preemptible: !there.preemptible.is_empty(),
            may_preempt,
        }
    }
}
