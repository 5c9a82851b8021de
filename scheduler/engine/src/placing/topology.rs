//! Which domain each Node is in, for the labels that Pods speak of. Nodes with the same value of a label are
//! one domain.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::ClusterNode;
use rules::Cluster;

use super::FixedMap;
use super::rows::{Rows, Slot};

pub(super) type KeyId = usize;
pub(super) type Domain = u32;

/// The Node does not carry the label.
pub(super) const NOWHERE: Domain = Domain::MAX;

#[derive(Debug, Default)]
pub(super) struct Topology {
    ids: BTreeMap<Arc<str>, KeyId>,
    keys: Vec<Key>,
}

#[derive(Debug)]
pub(super) struct Key {
    label: Arc<str>,
    domains: FixedMap<Arc<str>, Domain>,
    of_node: Vec<Domain>,
    nodes_in: Vec<u32>,
    /// Domains with more than one Node.
    shared: usize,
}

impl Topology {
    pub fn key(&mut self, label: &Arc<str>, rows: &Rows, cluster: &Cluster) -> KeyId {
        if let Some(id) = self.ids.get(label) {
            return *id;
        }
        let mut key = Key {
            label: label.clone(),
            domains: FixedMap::default(),
            of_node: Vec::new(),
            nodes_in: Vec::new(),
            shared: 0,
        };
        for (name, node) in &cluster.nodes {
            if let Some(slot) = rows.slot_of(name) {
                key.put(slot, Some(node));
            }
        }
        self.keys.push(key);
        self.ids.insert(label.clone(), self.keys.len() - 1);
        self.keys.len() - 1
    }

    /// Domains of one label that were ever seen, at most: some have no Node any more.
    pub fn domains(&self) -> usize {
        self.keys.iter().map(Key::domains).max().unwrap_or(0)
    }

    pub fn of(&self, key: KeyId) -> &Key {
        &self.keys[key]
    }

    /// `None`: the Node is gone.
    pub fn put(&mut self, slot: Slot, node: Option<&ClusterNode>) {
        for key in &mut self.keys {
            key.put(slot, node);
        }
    }
}

impl Key {
    pub fn domain(&self, slot: Slot) -> Domain {
        self.of_node.get(slot as usize).copied().unwrap_or(NOWHERE)
    }

    /// How many domains were ever seen.
    pub fn domains(&self) -> usize {
        self.nodes_in.len()
    }

    /// Whether each Node is in a domain of its own.
    pub fn is_of_nodes(&self) -> bool {
        self.shared == 0
    }

    fn put(&mut self, slot: Slot, node: Option<&ClusterNode>) {
        let before = self.domain(slot);
        let value = node.and_then(|node| node.node.labels.get(&self.label));
        let now = value.map_or(NOWHERE, |value| self.domain_of(value));
        if before == now {
            return;
        }
        if self.of_node.len() <= slot as usize {
            self.of_node.resize(slot as usize + 1, NOWHERE);
        }
        self.of_node[slot as usize] = now;
        if let Some(nodes) = self.nodes_in.get_mut(before as usize) {
            *nodes -= 1;
            self.shared -= usize::from(*nodes == 1);
        }
        if let Some(nodes) = self.nodes_in.get_mut(now as usize) {
            *nodes += 1;
            self.shared += usize::from(*nodes == 2);
        }
    }

    fn domain_of(&mut self, value: &Arc<str>) -> Domain {
        if let Some(domain) = self.domains.get(value) {
            return *domain;
        }
        let domain = u32::try_from(self.nodes_in.len()).unwrap_or(NOWHERE);
        self.nodes_in.push(0);
        self.domains.insert(value.clone(), domain);
        domain
    }
}
