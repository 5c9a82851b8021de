//! What a class of Pods requires of the Pods around it, as running sums over places.

use model::{ClusterPod, LabelSelector, SelectorError};
use rules::{Cluster, Plugin, Reason, Rules};

use super::NodeIndex;
use super::count::Count;
use super::plugins::inter_pod_affinity::PodAffinity;
use super::plugins::pod_topology_spread::{HardSpread, SoftSpread, hard_spread, soft_spread};
use super::rows::Slot;
use super::topology::KeyId;

#[derive(Debug, Default)]
pub(super) struct Constraints {
    pub affinity: PodAffinity,
    pub spread: Vec<HardSpread>,
    pub soft_spread: Vec<SoftSpread>,
    /// Whether Nodes without one of the labels are left out of the soft spread.
    pub needs_every_key: bool,
    /// What it is spread among if it says nothing itself.
    siblings: Option<LabelSelector>,
}

impl Constraints {
    /// Fails when spread constraints cannot be parsed.
    pub fn new(
        rules: &Rules,
        cluster: &Cluster,
        pod: &ClusterPod,
        index: &mut NodeIndex,
    ) -> Result<Self, SelectorError> {
        let mut it =
            Self { affinity: PodAffinity::new(rules, cluster, pod, index), ..Self::default() };
        if rules.filters_by(Plugin::PodTopologySpread) {
            it.spread = hard_spread(rules, cluster, pod, index)?;
        }
        if rules.scores_by(Plugin::PodTopologySpread) {
            it.needs_every_key = rules::score_needs_every_key(rules, pod);
            it.soft_spread = soft_spread(rules, cluster, pod, index, it.needs_every_key)?;
        }
        it.siblings = pod.topology_spread.is_empty().then(|| cluster.siblings_of(pod));
        it.affinity.attach_carried(rules, cluster, pod, index);
        Ok(it)
    }

    /// Whether Services and controllers mean other Pods than when this was made.
    pub fn has_other_siblings(&self, cluster: &Cluster, pod: &ClusterPod) -> bool {
        self.siblings.as_ref().is_some_and(|before| *before != cluster.siblings_of(pod))
    }

    pub fn is_empty(&self) -> bool {
        self.counts().next().is_none()
    }

    /// Whether none of them keeps the class from a Node: they only make some Nodes better than others.
    pub fn are_soft(&self) -> bool {
        self.affinity.is_soft() && self.spread.is_empty()
    }

    fn counts(&self) -> impl Iterator<Item = &Count> {
        let spread = self.spread.iter().map(|it| &it.count);
        let soft = self.soft_spread.iter().map(|it| &it.count);
        self.affinity.counts().chain(spread).chain(soft)
    }

    /// The labels whose places have several Nodes: Nodes that agree in all of them are treated alike.
    pub fn shared_keys(&self) -> Vec<KeyId> {
        let mut keys: Vec<KeyId> =
            self.counts().filter(|count| !count.is_of_nodes).map(|count| count.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether Nodes of one place must be looked at one by one.
    pub fn tells_nodes_apart(&self) -> bool {
        let of_nodes = |count: &Count| count.is_of_nodes;
        self.affinity.together.iter().any(of_nodes)
            || self.spread.iter().any(|it| of_nodes(&it.count))
            || self.soft_spread.iter().any(|it| it.is_of_nodes || of_nodes(&it.count))
            || self.affinity.attraction.iter().any(|(count, _)| of_nodes(count))
    }

    /// The Pods on a Node have changed.
    pub fn follow(&mut self, slot: Slot, index: &NodeIndex) {
        let spread = self.spread.iter_mut().map(|it| &mut it.count);
        let soft = self.soft_spread.iter_mut().map(|it| &mut it.count);
        for count in self.affinity.counts_mut().chain(spread).chain(soft) {
            count.follow(slot, index);
        }
    }

    /// To be called before questions, after all changes.
    pub fn settle(&mut self) {
        self.affinity.settle();
        for spread in &mut self.spread {
            spread.fewest = spread.count.fewest(spread.min_domains);
        }
    }

    /// What other Pods say of the Node, as far as all Nodes of its places have it in common
    /// (`of_nodes` false) or not.
    pub fn admits(&self, slot: Slot, index: &NodeIndex, of_nodes: bool) -> bool {
        self.affinity.is_together(slot, index, of_nodes)
            && (of_nodes || !self.affinity.is_kept_apart(slot, index, false))
            && self
                .spread
                .iter()
                .all(|it| it.count.is_of_nodes != of_nodes || it.holds(slot, index))
    }

    /// Why other Pods keep it off the Node: what the first plugin that does says.
    pub fn reason(&self, slot: Slot, index: &NodeIndex) -> Option<Reason> {
        let spread = self.spread.iter().find(|it| !it.holds(slot, index));
        spread.map(|it| it.reason(slot, index)).or_else(|| self.affinity.reason(slot, index))
    }
}
