//! Nodes, and what the rules look at besides Nodes and Pods.

use std::sync::Arc;

use model::{ClusterNode, NodeName, PodUid};
use rules::{ClusterObject, ClusterObjectChange, ClusterObjectId, DeviceChange, ObjectEffect};

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
        if self.observed.cluster.nodes.get(&name) != Some(&node) {
            self.observed.cluster.nodes.insert(name.clone(), node);
            self.cluster_changed(ClusterChange::Node(&name));
        }
    }

    pub(super) fn node_gone(&mut self, name: &NodeName) {
        self.observed.excluded.node_gone(name);
        if self.observed.cluster.nodes.remove(name).is_some() {
            self.cluster_changed(ClusterChange::Node(name));
        }
    }

    pub(super) fn cluster_object_seen(&mut self, object: ClusterObject) {
        // The security domain of a Namespace is one of its labels.
        if let ClusterObject::Namespace(name, labels) = &object
            && self.observed.objects.namespace_seen(name.clone(), labels)
        {
            self.domains_changed();
        }
        let change = self.observed.cluster.insert_object(object);
        self.cluster_object_changed(change.as_ref());
    }

    pub(super) fn cluster_object_gone(&mut self, id: &ClusterObjectId) {
        if let ClusterObjectId::Namespace(name) = id
            && self.observed.objects.namespace_gone(name)
        {
            self.domains_changed();
        }
        let change = self.observed.cluster.remove_object(id);
        self.cluster_object_changed(change.as_ref());
    }

    fn cluster_object_changed(&mut self, change: Option<&ClusterObjectChange>) {
        let Some(change) = change else { return };
        match change.effect() {
            ObjectEffect::Namespaces => self.cluster_changed(ClusterChange::Namespaces),
            ObjectEffect::Selectors { before, after } => {
                self.cluster_changed(ClusterChange::Selectors { before, after });
            }
            ObjectEffect::Budgets { before, after } => self.placing.budget_changed(before, after),
            ObjectEffect::Volumes(of) => self.cluster_changed(ClusterChange::Volumes(of)),
            ObjectEffect::Devices(of) => {
                self.cluster_changed(ClusterChange::Devices(of));
                if matches!(of, DeviceChange::Class) {
                    self.report_device_classes();
                }
            }
            ObjectEffect::Unchanged => {}
            ObjectEffect::Feasibility => self.cluster_changed(ClusterChange::Feasibility),
        }
        self.check_awaiting(change);
    }
}
