//! Who holds what: Node resources and corridor bandwidth, with undo.
//!
//! The ledger is derived state. It is rebuilt from bound Pods at start; nothing in it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{CorridorUid, Gbps, GrantedCorridor, NodeName, Shape};

/// What one Pod holds while it is bound or being bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub node: NodeName,
    pub shape: Arc<Shape>,
    pub corridor: Option<GrantedCorridor>,
}

/// What the Pods on one Node hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeUse {
    pub requests: model::Resources,
    pub scored_requests: model::Resources,
    pub pods: i64,
}

impl NodeUse {
    pub(crate) fn add(&mut self, shape: &Shape) {
        self.requests.add(&shape.requests);
        self.scored_requests.add(&shape.scored_requests);
        self.pods += 1;
    }

    fn sub(&mut self, shape: &Shape) {
        self.requests.sub(&shape.requests);
        self.scored_requests.sub(&shape.scored_requests);
        self.pods -= 1;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    nodes: BTreeMap<NodeName, NodeUse>,
    corridors: BTreeMap<CorridorUid, Gbps>,
    /// What was taken since the last commit, newest last.
    undo: Vec<Taken>,
}

#[derive(Debug)]
enum Taken {
    Node(NodeName, Arc<Shape>),
    Corridor(GrantedCorridor),
}

/// A point to roll back to. Only valid until the next commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize);

impl Ledger {
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    pub fn take_node(&mut self, node: &NodeName, shape: &Arc<Shape>) {
        self.nodes.entry(node.clone()).or_default().add(shape);
        self.undo.push(Taken::Node(node.clone(), shape.clone()));
    }

    pub fn take_corridor(&mut self, granted: &GrantedCorridor) {
        let reserved = self.corridors.entry(granted.uid.clone()).or_default();
        *reserved = reserved.saturating_add(granted.amount);
        self.undo.push(Taken::Corridor(granted.clone()));
    }

    /// Puts back everything taken since the mark.
    pub fn rollback(&mut self, mark: Mark) {
        assert!(mark.0 <= self.undo.len(), "a mark outlives no commit");
        while self.undo.len() > mark.0 {
            match self.undo.pop() {
                Some(Taken::Node(node, shape)) => self.put_back_node(&node, &shape),
                Some(Taken::Corridor(granted)) => self.put_back_corridor(&granted),
                None => break,
            }
        }
    }

    /// What was taken stays taken, until its Pod is released.
    pub fn commit(&mut self) {
        self.undo.clear();
    }

    pub fn take(&mut self, holding: &Holding) {
        self.take_node(&holding.node, &holding.shape);
        if let Some(granted) = &holding.corridor {
            self.take_corridor(granted);
        }
        self.commit();
    }

    pub fn release(&mut self, holding: &Holding) {
        let Holding { node, shape, corridor } = holding;
        self.put_back_node(node, shape);
        if let Some(granted) = corridor {
            self.put_back_corridor(granted);
        }
    }

    pub fn node(&self, name: &NodeName) -> Option<&NodeUse> {
        self.nodes.get(name)
    }

    pub fn reserved(&self, corridor: &CorridorUid) -> Gbps {
        self.corridors.get(corridor).copied().unwrap_or_default()
    }

    fn put_back_node(&mut self, name: &NodeName, shape: &Shape) {
        let Some(node) = self.nodes.get_mut(name) else {
            unreachable!("only what was taken from {name} is put back")
        };
        node.sub(shape);
        if node.pods == 0 {
            assert_eq!(*node, NodeUse::default(), "an empty Node {name} holds nothing");
            self.nodes.remove(name);
        }
    }

    fn put_back_corridor(&mut self, granted: &GrantedCorridor) {
        let Some(reserved) = self.corridors.get_mut(&granted.uid) else {
            // A grant of nothing leaves no entry behind.
            assert!(granted.amount.is_zero(), "only what was reserved is put back");
            return;
        };
        assert!(*reserved >= granted.amount, "only what was reserved is put back");
        *reserved = reserved.saturating_sub(granted.amount);
        if reserved.is_zero() {
            self.corridors.remove(&granted.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Resources;

    fn shape(cpu_milli: i64) -> Arc<Shape> {
        let requests = Resources { cpu_milli, ..Resources::default() };
        Arc::new(Shape { scored_requests: requests.clone(), requests, ..Shape::default() })
    }

    fn granted(milli: u64) -> GrantedCorridor {
        GrantedCorridor { uid: "c".into(), amount: Gbps::from_milli(milli) }
    }

    #[test]
    fn rollback_puts_back_what_was_taken_since_the_mark_and_no_more() {
        let mut ledger = Ledger::default();
        let node = NodeName::new("n1");
        ledger.take_node(&node, &shape(100));
        let mark = ledger.mark();
        ledger.take_node(&node, &shape(300));
        ledger.take_corridor(&granted(40));
        ledger.rollback(mark);
        assert_eq!(ledger.node(&node).map(|used| used.requests.cpu_milli), Some(100));
        assert_eq!(ledger.reserved(&"c".into()), Gbps::ZERO);
    }

    #[test]
    fn a_released_holding_leaves_nothing() {
        let mut ledger = Ledger::default();
        let holding = Holding { node: "n1".into(), shape: shape(100), corridor: Some(granted(0)) };
        ledger.take(&holding);
        ledger.release(&holding);
        assert!(ledger.nodes.is_empty() && ledger.corridors.is_empty());
    }

    #[test]
    fn two_grants_of_nothing_can_both_be_put_back() {
        let mut ledger = Ledger::default();
        ledger.take_corridor(&granted(0));
        ledger.take_corridor(&granted(0));
        ledger.put_back_corridor(&granted(0));
        ledger.put_back_corridor(&granted(0));
        assert!(ledger.corridors.is_empty());
    }
}
