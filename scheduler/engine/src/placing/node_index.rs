//! The index of Nodes and of the Pods on them, updated with every event.

use std::collections::BTreeMap;

use model::{ClusterPod, NodeName};
use rules::{Cluster, VolumeChange};

use super::attached::AttachedVolumes;
use super::budgets::BudgetLog;
use super::counters::{Counted, CounterId, Counters};
use super::devices::DeviceChanges;
use super::images::Images;
use super::labelled::LabelledNodes;
use super::log::{ChangeLog, Changed};
use super::rows::{Rows, Slot};
use super::topology::Topology;
use crate::wake::ClusterChange;

#[derive(Debug, Default)]
pub(super) struct NodeIndex {
    pub rows: Rows,
    pub topology: Topology,
    pub counters: Counters,
    pub images: Images,
    pub attached: AttachedVolumes,
    pub labelled: LabelledNodes,
    /// Whether a class of Pods depends on what storage is free near Nodes.
    pub is_storage_read: bool,
    pub device_changes: DeviceChanges,
    pub log: ChangeLog,
    /// The same, of Nodes themselves only.
    pub node_log: ChangeLog,
    pub budgets: BudgetLog,
    /// How often Services and controllers have changed.
    pub selectors_changes: u64,
    /// The priorities of Pods that are nominated for a Node, by Node.
    nominated: BTreeMap<NodeName, Vec<i32>>,
}

/// Fewer places than this are not worth forgetting.
const DOMAINS_MIN: usize = 1 << 14;
/// A Node is in one place for each label; the others are of Nodes that have gone.
const DOMAINS_PER_NODE_MAX: usize = 2;

impl NodeIndex {
    pub fn of(cluster: &Cluster, names: Vec<Option<NodeName>>) -> Self {
        let mut index = Self::default();
        index.rows.seat(names);
        for node in cluster.nodes.keys() {
            index.node_changed(node, cluster);
        }
        for pod in cluster.pods().values().filter(|pod| pod.node.is_none()) {
            index.nominate(pod, true);
        }
        let readers = &mut index.counters.readers;
        for selector in cluster.spreading_selectors() {
            readers.count(selector, true);
        }
        // Waiting Pods were already classified by all of these.
        readers.take_newly_read();
        index
    }

    pub fn counter(&mut self, counted: Counted, cluster: &Cluster) -> CounterId {
        self.counters.counter(counted, &self.rows, cluster)
    }

    /// Whether most names of places are of Nodes that are gone.
    pub fn is_overgrown(&self) -> bool {
        let nodes = self.rows.nodes();
        self.topology.domains() > DOMAINS_MIN + nodes * DOMAINS_PER_NODE_MAX
    }

    /// Whether a Pod of at least this priority is nominated for a Node.
    pub fn has_nominated(&self, priority: i32) -> bool {
        self.nominated.values().flatten().any(|it| *it >= priority)
    }

    /// Returns whether everything has to be rebuilt.
    pub fn note(&mut self, change: ClusterChange<'_>, cluster: &Cluster) -> bool {
        match change {
            ClusterChange::Node(name) => self.node_changed(name, cluster),
            ClusterChange::Pod { before, after } => {
                // The new one first: what both read or carry does not go and come anew.
                let moves = [(after, 1), (before, -1)];
                let moves = moves.iter().filter_map(|(pod, sign)| Some(((*pod)?, *sign)));
                let is_plain = moves.clone().all(|(pod, sign)| self.is_plain(pod, sign));
                for (pod, sign) in moves {
                    self.pod_changed(pod, sign, cluster, is_plain);
                }
            }
            ClusterChange::Selectors { before, after } => {
                self.selectors_changes += 1;
                // The new one first: what both read does not come anew.
                for (selector, is_new) in [(after, true), (before, false)] {
                    if let Some(selector) = selector {
                        self.counters.readers.count(selector, is_new);
                    }
                }
            }
            ClusterChange::Volumes(change) => self.volumes_changed(change, cluster),
            ClusterChange::Devices(change) => self.devices_changed(change, cluster),
            // The plain rules read the object; a quick form that keeps something of it has an effect of its own.
            ClusterChange::Feasibility => {}
            // Terms of nominated Pods depend on them, too, and are not counted.
            ClusterChange::Namespaces => {
                return self.counters.looks_at_namespaces() || !self.nominated.is_empty();
            }
        }
        false
    }

    fn node_changed(&mut self, name: &NodeName, cluster: &Cluster) {
        let known = self.rows.slot_of(name);
        let Some(node) = cluster.nodes.get(name) else {
            let Some(slot) = known else { return };
            for pod in cluster.pods_on(name) {
                self.counters.pod_moved(slot, pod, -1, cluster);
            }
            self.images.remove(slot, &self.rows);
            self.rows.remove(name);
            self.topology.put(slot, None);
            self.attached.renew(slot, None, cluster);
            self.labelled.put(slot, None);
            self.changed(slot, Changed::Node);
            return;
        };
        let is_counted = known.is_some_and(|slot| self.rows.is_put(slot));
        let slot = self.rows.put(node, cluster);
        self.images.put(slot, node, &self.rows);
        self.topology.put(slot, Some(node));
        self.labelled.put(slot, Some(node));
        if !is_counted {
            self.attached.renew(slot, Some(name), cluster);
            for pod in cluster.pods_on(name) {
                self.counters.pod_moved(slot, pod, 1, cluster);
            }
            let nominated = self.nominated.get(name).map_or(0, Vec::len);
            self.rows.set_nominated(slot, nominated);
        }
        self.changed(slot, Changed::Node);
    }

    fn is_plain(&self, pod: &ClusterPod, sign: i64) -> bool {
        let slot = pod.node.as_ref().and_then(|node| self.rows.slot_of(node));
        slot.is_none_or(|slot| self.rows.can_add(slot, pod, sign))
    }

    /// A Pod has come (1) or gone (−1), which can just be added or taken away (`is_plain`) or not.
    fn pod_changed(&mut self, pod: &ClusterPod, sign: i64, cluster: &Cluster, is_plain: bool) {
        let Some(node) = &pod.node else {
            self.nominate(pod, sign > 0);
            return;
        };
        let Some(slot) = self.rows.slot_of(node) else { return };
        if is_plain {
            self.rows.add(slot, pod, sign);
        } else {
            self.rows.renew(slot, cluster);
        }
        self.counters.pod_moved(slot, pod, sign, cluster);
        match (pod.volumes.is_empty(), sign > 0) {
            (true, _) => {}
            (false, true) => self.attached.pod_came(slot, pod, node, cluster),
            // Another Pod may use the same volume.
            (false, false) => {
                self.attached.renew(slot, Some(node), cluster);
            }
        }
        self.changed(slot, Changed::Pods);
    }

    pub fn volumes_changed(&mut self, change: VolumeChange<'_>, cluster: &Cluster) {
        // Nothing is counted until a CSINode sets a limit.
        if !self.attached.is_unlimited() || matches!(change, VolumeChange::CsiNode(_)) {
            match change.nodes_attaching(cluster) {
                Some(nodes) => nodes.iter().for_each(|node| self.count_attached(node, cluster)),
                None => cluster.nodes.keys().for_each(|node| self.count_attached(node, cluster)),
            }
        }
        if self.is_storage_read {
            self.storage_changed(change, cluster);
        }
    }

    fn storage_changed(&mut self, change: VolumeChange<'_>, cluster: &Cluster) {
        for narrowing in change.storage_near(cluster) {
            let Self { labelled, rows, .. } = self;
            let slots: Vec<Slot> = match narrowing {
                Some((label, values)) => {
                    let mut with = |value| labelled.with(label, value, rows, cluster).to_vec();
                    values.iter().flat_map(|value| with(&**value)).collect()
                }
                None => rows.slots().collect(),
            };
            for slot in slots {
                self.changed(slot, Changed::Pods);
            }
        }
    }

    fn count_attached(&mut self, node: &NodeName, cluster: &Cluster) {
        if let Some(slot) = self.rows.slot_of(node) {
            let is_limited = self.attached.renew(slot, Some(node), cluster);
            if is_limited {
                self.changed(slot, Changed::Pods);
            }
        }
    }

    /// A Pod that waits is nominated for a Node, or is no longer.
    fn nominate(&mut self, pod: &ClusterPod, is_added: bool) {
        let Some(node) = &pod.nominated_node else { return };
        self.counters.readers.count_terms(&pod.pod_affinity, is_added);
        let nominated = self.nominated.entry(node.clone()).or_default();
        if is_added {
            nominated.push(pod.priority);
        } else if let Some(place) = nominated.iter().position(|it| *it == pod.priority) {
            nominated.swap_remove(place);
        }
        let count = nominated.len();
        if count == 0 {
            self.nominated.remove(node);
        }
        if let Some(slot) = self.rows.slot_of(node) {
            self.rows.set_nominated(slot, count);
            self.changed(slot, Changed::Pods);
        }
    }

    pub fn changed(&mut self, slot: Slot, changed: Changed) {
        let nodes = self.rows.len();
        self.log.push(slot, changed, nodes);
        if changed == Changed::Node {
            self.node_log.push(slot, changed, nodes);
        }
    }
}
