//! Filters that look at Nodes only (labels, taints, names), by class: Pods with the same selectors and tolerations,
//! whatever their requests, images and pod affinity, share the result for each Node.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    ClusterNode, Effect, FeatureNames, Labels, NodeAffinity, NodeName, NodeSelector, Reach,
    SchedulingSpec, Taint, Toleration,
};
use rules::{Cluster, Plugin, Reason, Rules};

use super::FixedMap;
use super::NodeIndex;
use super::log::Position;
use super::rows::Slot;
use super::statics::{GONE, Group, NUMBERS_MAX, REJECTED, number_of};

pub(super) type NodeFilterClassId = usize;

/// Everything in a Pod that filters which look at Nodes only depend on: the key of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeFilter {
    pub profile: Arc<str>,
    tolerations: Vec<Toleration>,
    node_selector: Labels,
    node_affinity: NodeAffinity,
    reach: Vec<Reach>,
    required_features: FeatureNames,
    /// The Nodes that its affinity names, when it names any.
    pub named: Option<BTreeSet<NodeName>>,
    stays_on_cordoned: bool,
}

/// The result of these filters for one Node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NodeOutcome {
    Open(Group),
    Rejected(Vec<Reason>),
}

#[derive(Debug)]
pub(super) struct NodeFilterClass {
    filter: NodeFilter,
    /// The number of the group or of the rejection of each Node.
    pub of_node: Vec<u16>,
    pub groups: Vec<Group>,
    pub rejections: Vec<Vec<Reason>>,
    /// How often all Nodes were numbered anew.
    pub numberings: u32,
    at: Option<Position>,
}

#[derive(Debug, Default)]
pub(super) struct NodeFilterClasses {
    ids: FixedMap<NodeFilter, NodeFilterClassId>,
    all: Vec<NodeFilterClass>,
    /// What they take in memory, about.
    pub bytes: usize,
}

impl NodeFilterClasses {
    pub fn id(
        &mut self,
        profile: &Arc<str>,
        scheduling: &SchedulingSpec,
        reach: &[Reach],
    ) -> NodeFilterClassId {
        let filter = NodeFilter::new(profile, scheduling, reach);
        if let Some(id) = self.ids.get(&filter) {
            return *id;
        }
        self.ids.insert(filter.clone(), self.all.len());
        self.all.push(NodeFilterClass {
            filter,
            of_node: Vec::new(),
            groups: Vec::new(),
            rejections: Vec::new(),
            numberings: 0,
            at: None,
        });
        self.all.len() - 1
    }

    pub fn of(&self, id: NodeFilterClassId) -> &NodeFilterClass {
        &self.all[id]
    }

    /// Brings it up to date. False: there are too many groups of Nodes to tell apart.
    pub fn sync(
        &mut self,
        id: NodeFilterClassId,
        rules: &Rules,
        cluster: &Cluster,
        index: &NodeIndex,
    ) -> bool {
        let it = &mut self.all[id];
        let places_before = it.of_node.len();
        let changes = it.at.and_then(|at| index.node_log.since(at));
        let is_known = changes.is_some();
        for (slot, _) in changes.into_iter().flatten() {
            it.judge(slot, rules, cluster, index);
        }
        // Numbers may be used up by what no Node is any more.
        if !is_known || !it.is_told_apart() {
            it.number_anew(rules, cluster, index);
        }
        it.at = Some(index.node_log.end());
        self.bytes += it.of_node.len().saturating_sub(places_before) * size_of::<u16>();
        it.is_told_apart()
    }
}

impl NodeFilterClass {
    /// False: there are more groups, or rejections, than numbers.
    fn is_told_apart(&self) -> bool {
        self.groups.len().max(self.rejections.len()) < NUMBERS_MAX
    }

    fn number_anew(&mut self, rules: &Rules, cluster: &Cluster, index: &NodeIndex) {
        self.of_node.clear();
        self.groups.clear();
        self.rejections.clear();
        self.numberings = self.numberings.wrapping_add(1);
        self.of_node.resize(index.rows.len(), GONE);
        for (name, node) in &cluster.nodes {
            if let Some(slot) = index.rows.slot_of(name) {
                let outcome = self.outcome(node, rules);
                self.write(slot, outcome);
            }
        }
    }

    fn judge(&mut self, slot: Slot, rules: &Rules, cluster: &Cluster, index: &NodeIndex) {
        if self.of_node.len() <= slot as usize {
            self.of_node.resize(slot as usize + 1, GONE);
        }
        let node = index.rows.name(slot).and_then(|name| cluster.nodes.get(name));
        match node {
            Some(node) => {
                let outcome = self.outcome(node, rules);
                self.write(slot, outcome);
            }
            None => self.of_node[slot as usize] = GONE,
        }
    }

    fn write(&mut self, slot: Slot, outcome: NodeOutcome) {
        let number = match outcome {
            NodeOutcome::Open(group) => number_of(&mut self.groups, group),
            NodeOutcome::Rejected(reasons) => REJECTED + number_of(&mut self.rejections, reasons),
        };
        self.of_node[slot as usize] = number;
    }

    fn outcome(&self, node: &ClusterNode, rules: &Rules) -> NodeOutcome {
        match self.filter.rejects(node, rules) {
            Some(reasons) => NodeOutcome::Rejected(reasons),
            None => NodeOutcome::Open(self.filter.group(node, rules)),
        }
    }
}

impl NodeFilter {
    pub fn new(profile: &Arc<str>, scheduling: &SchedulingSpec, reach: &[Reach]) -> Self {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            value: "".into(),
            effect: Effect::NoSchedule,
        };
        let required = scheduling.node_affinity.required.as_ref();
        Self {
            profile: profile.clone(),
            tolerations: scheduling.tolerations.clone(),
            node_selector: scheduling.node_selector.clone(),
            node_affinity: scheduling.node_affinity.clone(),
            reach: reach.to_vec(),
            required_features: scheduling.required_features.clone(),
            named: required.and_then(NodeSelector::named_nodes),
            stays_on_cordoned: scheduling.tolerations.iter().any(|it| it.tolerates(&cordon)),
        }
    }

    /// Whether nothing about the Node itself keeps the Pod off it, but for features that it may lack.
    pub fn admits(&self, node: &ClusterNode, rules: &Rules) -> bool {
        self.rejects(node, rules).is_none()
    }

    /// By the rules that come before all that look at Pods, in kube-scheduler's order.
    fn rejects(&self, node: &ClusterNode, rules: &Rules) -> Option<Vec<Reason>> {
        let of = &node.node;
        let Self { tolerations, node_selector, node_affinity, reach, .. } = self;
        let required = node_affinity.required.as_ref();
        if rules.filters_by(Plugin::NodeAffinity)
            && self.named.as_ref().is_some_and(|named| !named.contains(&of.name))
        {
            return Some(vec![Reason::NotNamed { nominee_rejected_by: None }]);
        }
        if rules.filters_by(Plugin::NodeUnschedulable)
            && of.unschedulable
            && !self.stays_on_cordoned
        {
            return Some(vec![Reason::NodeUnschedulable]);
        }
        if rules.filters_by(Plugin::TaintToleration)
            && model::first_untolerated(&of.taints, tolerations).is_some()
        {
            return Some(vec![Reason::UntoleratedTaint]);
        }
        if rules.filters_by(Plugin::NodeAffinity) {
            let added = rules.added_affinity.required.as_ref();
            if added.is_some_and(|selector| !selector.matches(&of.name, &of.labels)) {
                return Some(vec![Reason::EnforcedNodeAffinity]);
            }
            let accepts = of.matches(node_selector)
                && required.is_none_or(|selector| selector.matches(&of.name, &of.labels));
            if !accepts {
                return Some(vec![Reason::NodeAffinity]);
            }
        }
        if !rules.filters_by(Plugin::Corridor) {
            return None;
        }
        let beyond = reach.iter().filter(|it| !of.matches(&it.node_selector));
        let beyond: Vec<Reason> =
            beyond.map(|it| Reason::OutOfReach { object: it.object.clone() }).collect();
        (!beyond.is_empty()).then_some(beyond)
    }

    fn group(&self, node: &ClusterNode, rules: &Rules) -> Group {
        let of = &node.node;
        let mut group =
            Group { taints: 0, preference: 0, images: 0, lacks_features: self.lacks(node, rules) };
        if rules.scores_by(Plugin::TaintToleration) {
            let unwanted = of.taints.iter().filter(|taint| {
                taint.effect == Effect::PreferNoSchedule
                    && !self.tolerations.iter().any(|it| it.tolerates(taint))
            });
            group.taints = i64::try_from(unwanted.count()).unwrap_or(i64::MAX);
        }
        if rules.scores_by(Plugin::NodeAffinity) {
            let added = rules.added_affinity.preference(&of.name, &of.labels);
            group.preference =
                added.saturating_add(self.node_affinity.preference(&of.name, &of.labels));
        }
        group
    }

    fn lacks(&self, node: &ClusterNode, rules: &Rules) -> bool {
        rules.filters_by(Plugin::NodeDeclaredFeatures)
            && !self.required_features.is_subset(&node.declared_features)
    }
}
