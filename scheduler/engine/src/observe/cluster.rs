//! Nodes, and what the rules look at besides Nodes and Pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    ClusterNode, LabelSelector, Labels, NodeName, ObjectKey, Owner, PodDisruptionBudget, PodUid,
};

use crate::engine::Engine;
use crate::wake::ClusterChange;

impl Engine {
    pub(super) fn pod_unreadable(&mut self, pod: PodUid, node: &NodeName) {
        let known = self.observed.cluster.pods().get(&pod);
        if known.is_some_and(|known| known.node.as_ref() == Some(node)) {
            // Its last good version goes on to count.
            return;
        }
        self.observed.excluded.exclude(pod, node.clone());
        self.show_excluded(node);
    }

    /// A Node that was excluded before is shown so already, and not as it really is.
    fn show_excluded(&mut self, node: &NodeName) {
        let known = self
            .observed
            .cluster
            .nodes
            .get(node)
            .filter(|_| !self.observed.excluded.is_shown_excluded(node));
        if let Some(known) = known.cloned() {
            self.node_seen(known);
        }
    }

    /// What the Pod uses is known now, or nothing any more.
    pub(super) fn readmit(&mut self, pod: &PodUid) {
        if let Some(node) = self.observed.excluded.readmit(pod) {
            self.node_seen(node);
        }
    }

    /// Only Pods that were decided here count: a tenant must not exclude a Node by a Pod that names it.
    pub(super) fn kubelet_rejected(&mut self, pod: &PodUid, why: Arc<str>) {
        let decided = self.observed.pods.get(pod).filter(|_| self.has_placed(pod));
        let node = decided.and_then(|record| record.reservation.as_ref()).map(|it| it.node.clone());
        let Some(node) = node.filter(|node| self.observed.cluster.nodes.contains_key(node)) else {
            return;
        };
        self.observed.excluded.rejected(self.now, node.clone(), why);
        self.show_excluded(&node);
    }

    /// Nodes whose time is over take Pods again.
    pub(crate) fn readmit_due(&mut self) {
        for node in self.observed.excluded.readmit_due(self.now) {
            self.node_seen(node);
        }
    }

    pub(super) fn node_seen(&mut self, node: ClusterNode) {
        let node = self.observed.excluded.shown(node);
        let name = node.node.name.clone();
        if is_new(&mut self.observed.cluster.nodes, name.clone(), node) {
            self.cluster_changed(ClusterChange::Node(&name));
        }
    }

    pub(super) fn node_gone(&mut self, name: &NodeName) {
        self.observed.excluded.node_gone(name);
        if self.observed.cluster.nodes.remove(name).is_some() {
            self.cluster_changed(ClusterChange::Node(name));
        }
    }

    pub(super) fn namespace_labels_seen(&mut self, name: Arc<str>, labels: Labels) {
        if is_new(&mut self.observed.cluster.namespaces, name, labels) {
            self.cluster_changed(ClusterChange::Namespaces);
        }
    }

    pub(super) fn namespace_labels_gone(&mut self, name: &str) {
        if self.observed.cluster.namespaces.remove(name).is_some() {
            self.cluster_changed(ClusterChange::Namespaces);
        }
    }

    pub(super) fn service_seen(&mut self, service: ObjectKey, selector: Labels) {
        let after = LabelSelector::of_labels(&selector);
        if self.observed.cluster.services.get(&service) != Some(&selector) {
            let before = self.observed.cluster.services.insert(service, selector);
            let before = before.as_ref().map(LabelSelector::of_labels);
            self.selector_changed(before.as_ref(), Some(&after));
        }
    }

    pub(super) fn service_gone(&mut self, service: &ObjectKey) {
        if let Some(before) = self.observed.cluster.services.remove(service) {
            self.selector_changed(Some(&LabelSelector::of_labels(&before)), None);
        }
    }

    pub(super) fn owner_seen(
        &mut self,
        namespace: Arc<str>,
        owner: Owner,
        selector: LabelSelector,
    ) {
        let owner = (namespace, owner);
        if self.observed.cluster.owners.get(&owner) != Some(&selector) {
            let after = selector.clone();
            let before = self.observed.cluster.owners.insert(owner, selector);
            self.selector_changed(before.as_ref(), Some(&after));
        }
    }

    pub(super) fn owner_gone(&mut self, namespace: Arc<str>, owner: Owner) {
        if let Some(before) = self.observed.cluster.owners.remove(&(namespace, owner)) {
            self.selector_changed(Some(&before), None);
        }
    }

    fn selector_changed(&mut self, before: Option<&LabelSelector>, after: Option<&LabelSelector>) {
        self.cluster_changed(ClusterChange::Selectors { before, after });
    }

    pub(super) fn budget_seen(&mut self, budget: PodDisruptionBudget) {
        let before = self.observed.cluster.budgets.get(&budget.key);
        self.placing.budget_changed(before, Some(&budget));
        self.observed.cluster.insert_budget(budget);
    }

    pub(super) fn budget_gone(&mut self, key: &ObjectKey) {
        let before = self.observed.cluster.budgets.remove(key);
        self.placing.budget_changed(before.as_ref(), None);
    }
}

/// Keeps the value; whether it says anything that was not known.
fn is_new<K: Ord, V: PartialEq>(known: &mut BTreeMap<K, V>, key: K, value: V) -> bool {
    if known.get(&key) == Some(&value) {
        return false;
    }
    known.insert(key, value);
    true
}
