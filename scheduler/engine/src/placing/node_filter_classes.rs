//! Filters that look at Nodes only (labels, taints, names), by class: Pods with the same selectors and tolerations,
//! whatever their requests, images and pod affinity, share the result for each Node.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    ClusterNode, FeatureNames, Labels, NodeAffinity, NodeName, NodeSelector, Reach, SchedulingSpec,
    Toleration,
};
use rules::{Cluster, Plugin, Reason, Rules, VolumeNeeds};

use super::FixedMap;
use super::NodeIndex;
use super::log::Position;
use super::plugins::{
    corridor, node_affinity, node_declared_features, node_unschedulable, taint_toleration,
};
use super::pod_classes::PodClassKey;
use super::rows::Slot;
use super::statics::{GONE, Group, NUMBERS_MAX, REJECTED, number_of};

pub(super) type NodeFilterClassId = usize;

/// Everything in a Pod that filters which look at Nodes only depend on: the key of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeFilter {
    pub profile: Arc<str>,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) node_selector: Labels,
    pub(super) node_affinity: NodeAffinity,
    pub(super) reach: Vec<Reach>,
    pub(super) required_features: FeatureNames,
    /// The Nodes that its affinity names, when it names any.
    pub named: Option<BTreeSet<NodeName>>,
    pub(super) tolerates_cordon: bool,
    /// What its volumes ask of the labels of the Node.
    volumes: Option<VolumeNeeds>,
}

/// The result of these filters for one Node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NodeOutcome {
    Open(Group),
    /// Without a reason: for its volumes, of which the plain rules say why.
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
    pub fn id(&mut self, of: &PodClassKey) -> NodeFilterClassId {
        let PodClassKey { profile, namespace: _, scheduling, reach, volumes, devices: _ } = of;
        let volumes = volumes.as_ref().and_then(|it| it.of_labels());
        let filter = NodeFilter { volumes, ..NodeFilter::new(profile, scheduling, reach) };
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
            None if !self.filter.admits_volumes(node) => NodeOutcome::Rejected(Vec::new()),
            None => NodeOutcome::Open(self.filter.group(node, rules)),
        }
    }
}

impl NodeFilter {
    pub fn new(profile: &Arc<str>, scheduling: &SchedulingSpec, reach: &[Reach]) -> Self {
        let required = scheduling.node_affinity.required.as_ref();
        Self {
            profile: profile.clone(),
            tolerations: scheduling.tolerations.clone(),
            node_selector: scheduling.node_selector.clone(),
            node_affinity: scheduling.node_affinity.clone(),
            reach: reach.to_vec(),
            required_features: scheduling.required_features.clone(),
            named: required.and_then(NodeSelector::named_nodes),
            tolerates_cordon: node_unschedulable::is_tolerated(scheduling),
            volumes: None,
        }
    }

    /// Whether nothing about the Node itself keeps the Pod off it, but for features that it may lack.
    pub fn admits(&self, node: &ClusterNode, rules: &Rules) -> bool {
        self.rejects(node, rules).is_none()
    }

    fn admits_volumes(&self, node: &ClusterNode) -> bool {
        self.volumes.as_ref().is_none_or(|volumes| volumes.admit(&node.node.labels))
    }

    /// By the plugins that come before all that look at Pods, in kube-scheduler's order.
    fn rejects(&self, node: &ClusterNode, rules: &Rules) -> Option<Vec<Reason>> {
        let filters: [(Plugin, NodeRejects); 5] = [
            (Plugin::NodeAffinity, node_affinity::is_not_named),
            (Plugin::NodeUnschedulable, node_unschedulable::rejects),
            (Plugin::TaintToleration, taint_toleration::rejects),
            (Plugin::NodeAffinity, node_affinity::rejects),
            (Plugin::Corridor, corridor::rejects),
        ];
        let active = filters.iter().filter(|(plugin, _)| rules.filters_by(*plugin));
        active.map(|(_, rejects)| rejects(self, node, rules)).find(|reasons| !reasons.is_empty())
    }

    fn group(&self, node: &ClusterNode, rules: &Rules) -> Group {
        let scores = |plugin| rules.scores_by(plugin);
        let taints = scores(Plugin::TaintToleration).then(|| taint_toleration::raw(self, node));
        let preference =
            scores(Plugin::NodeAffinity).then(|| node_affinity::raw(self, node, rules));
        Group {
            taints: taints.unwrap_or(0),
            preference: preference.unwrap_or(0),
            images: 0,
            lacks_features: rules.filters_by(Plugin::NodeDeclaredFeatures)
                && node_declared_features::rejects(self, node),
        }
    }
}

/// Every reason for which a plugin keeps the Pods of a class off a Node.
type NodeRejects = fn(&NodeFilter, &ClusterNode, &Rules) -> Vec<Reason>;
