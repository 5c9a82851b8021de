//! One running sum: the Pods of one counter, over the domains of one label.

use std::sync::Arc;

use model::ClusterNode;
use rules::Cluster;

use super::NodeIndex;
use super::counters::{Counted, CounterId};
use super::rows::Slot;
use super::topology::{Domain, KeyId, NOWHERE};

#[derive(Debug)]
pub(super) struct Count {
    /// `None` counts no Pods.
    counter: Option<CounterId>,
    pub key: KeyId,
    /// Each Node is a domain of its own, and is asked itself.
    pub is_of_nodes: bool,
    /// Nodes whose Pods count, if not all do.
    included: Option<Vec<bool>>,
    /// Nodes that count, by domain.
    nodes_in: Vec<u32>,
    sums: Vec<i64>,
    /// What was added of each Node.
    seen: Vec<u32>,
    pub total: i64,
}

impl Count {
    pub fn new(
        counted: Counted,
        label: &Arc<str>,
        cluster: &Cluster,
        index: &mut NodeIndex,
    ) -> Self {
        let id = index.counter(counted, cluster);
        Self::of(Some(id), label, cluster, index)
    }

    pub fn of(
        counter: Option<CounterId>,
        label: &Arc<str>,
        cluster: &Cluster,
        index: &mut NodeIndex,
    ) -> Self {
        let key = index.topology.key(label, &index.rows, cluster);
        let mut count = Self {
            counter,
            key,
            is_of_nodes: index.topology.of(key).is_of_nodes(),
            included: None,
            nodes_in: Vec::new(),
            sums: Vec::new(),
            seen: Vec::new(),
            total: 0,
        };
        count.renew(index);
        count
    }

    /// Counts on these Nodes only.
    pub fn only(
        &mut self,
        cluster: &Cluster,
        index: &NodeIndex,
        includes: impl Fn(&ClusterNode) -> bool,
    ) {
        let mut nodes = vec![false; index.rows.len()];
        for (name, node) in &cluster.nodes {
            if let Some(slot) = index.rows.slot_of(name) {
                nodes[slot as usize] = includes(node);
            }
        }
        self.included = Some(nodes);
        self.renew(index);
    }

    fn renew(&mut self, index: &NodeIndex) {
        let key = index.topology.of(self.key);
        self.sums = vec![0; key.domains()];
        self.nodes_in = vec![0; key.domains()];
        self.seen = vec![0; index.rows.len()];
        self.total = 0;
        for slot in index.rows.slots() {
            let domain = key.domain(slot);
            if domain != NOWHERE && self.includes(slot) {
                self.nodes_in[domain as usize] += 1;
            }
            self.follow(slot, index);
        }
    }

    pub fn includes(&self, slot: Slot) -> bool {
        let included = self.included.as_ref();
        included.is_none_or(|nodes| nodes.get(slot as usize).copied().unwrap_or(false))
    }

    pub fn follow(&mut self, slot: Slot, index: &NodeIndex) {
        let domain = self.domain(slot, index);
        if domain == NOWHERE || !self.includes(slot) {
            return;
        }
        let (Some(sum), Some(seen)) =
            (self.sums.get_mut(domain as usize), self.seen.get_mut(slot as usize))
        else {
            return;
        };
        let now = self.counter.map_or(0, |counter| index.counters.on_node(counter, slot));
        let more = i64::from(now) - i64::from(*seen);
        *seen = now;
        *sum += more;
        self.total += more;
    }

    pub fn domain(&self, slot: Slot, index: &NodeIndex) -> Domain {
        index.topology.of(self.key).domain(slot)
    }

    /// The sum of the domain that the Node is in; 0 when it is in none.
    pub fn here(&self, slot: Slot, index: &NodeIndex) -> i64 {
        let domain = self.domain(slot, index);
        self.sums.get(domain as usize).copied().unwrap_or(0)
    }

    /// The Pods on the Node itself, whatever its label says.
    pub fn on_node(&self, slot: Slot, index: &NodeIndex) -> i64 {
        self.counter.map_or(0, |counter| i64::from(index.counters.on_node(counter, slot)))
    }

    /// The smallest sum of any domain that counts; 0 when there are too few of them.
    pub fn fewest(&self, domains_min: i64) -> i64 {
        let sums = self.sums.iter().zip(&self.nodes_in).filter(|(_, nodes)| **nodes > 0);
        let (mut domains, mut fewest) = (0, i64::MAX);
        for (sum, _) in sums {
            domains += 1;
            fewest = fewest.min(*sum);
        }
        if domains == 0 || domains < domains_min { 0 } else { fewest }
    }
}
