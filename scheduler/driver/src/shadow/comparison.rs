//! Whether two schedulers agree about a Pod. Pure.

use std::collections::BTreeMap;

use engine::{NodeOpinion, Opinion};
use model::NodeName;

/// What the other scheduler did.
#[derive(Clone, Copy, Debug)]
pub(super) enum Theirs<'a> {
    Placed(&'a NodeName),
    /// With this message.
    Held(&'a str),
}

impl Theirs<'_> {
    pub fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Placed(node) => Some(node),
            Self::Held(_) => None,
        }
    }
}

/// How the two compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Its Node is one of our best.
    BestNode,
    SameReasons,
    /// Its Node has room, and we would rather take another.
    NotBest,
    /// We would not put it on that Node.
    NodeRejected,
    /// We know no such Node.
    NodeUnknown,
    /// It was placed, and we find no Node.
    HeldHere,
    /// It was held, and we find a Node.
    PlacedHere,
    OtherReasons,
    /// We hold it for something that the other scheduler does not look at, or we do not implement.
    OursAlone,
}

impl Reason {
    pub const ALL: [Self; 9] = [
        Self::BestNode,
        Self::SameReasons,
        Self::NotBest,
        Self::NodeRejected,
        Self::NodeUnknown,
        Self::HeldHere,
        Self::PlacedHere,
        Self::OtherReasons,
        Self::OursAlone,
    ];

    pub fn agrees(self) -> bool {
        matches!(self, Self::BestNode | Self::SameReasons)
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::BestNode => "best_node",
            Self::SameReasons => "same_reasons",
            Self::NotBest => "not_best",
            Self::NodeRejected => "node_rejected",
            Self::NodeUnknown => "node_unknown",
            Self::HeldHere => "held_here",
            Self::PlacedHere => "placed_here",
            Self::OtherReasons => "other_reasons",
            Self::OursAlone => "ours_alone",
        }
    }
}

pub(super) fn judge(ours: &Opinion, on_theirs: &NodeOpinion, theirs: &Theirs<'_>) -> Reason {
    match (ours, theirs) {
        (Opinion::Hold { by_nodes: false, .. }, _) => Reason::OursAlone,
        (Opinion::Place { best, .. }, Theirs::Placed(node)) => match on_theirs {
            _ if best.contains(*node) => Reason::BestNode,
            NodeOpinion::Feasible { .. } => Reason::NotBest,
            NodeOpinion::Rejected { .. } => Reason::NodeRejected,
            NodeOpinion::Unknown => Reason::NodeUnknown,
        },
        (Opinion::Hold { .. }, Theirs::Placed(_)) => Reason::HeldHere,
        (Opinion::Place { .. }, Theirs::Held(_)) => Reason::PlacedHere,
        (Opinion::Hold { message, .. }, Theirs::Held(theirs)) => {
            if reasons(message) == reasons(theirs) {
                Reason::SameReasons
            } else {
                Reason::OtherReasons
            }
        }
    }
}

/// `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: …` as counts by
/// reason. What is said about preemption is no reason; a message of another form is one.
fn reasons(message: &str) -> BTreeMap<&str, usize> {
    const NODES: &str = " nodes are available: ";
    let whole = || BTreeMap::from([(message, 1)]);
    let Some((_, rest)) = message.split_once(NODES) else { return whole() };
    // Reasons hold no full stop before a space.
    let (listed, _) = rest.split_once(". ").unwrap_or((rest, ""));
    let mut counts = BTreeMap::new();
    for item in listed.trim_end_matches('.').split(", ") {
        let Some((count, reason)) = item.split_once(' ') else { return whole() };
        let Ok(count) = count.parse::<usize>() else { return whole() };
        *counts.entry(reason).or_default() += count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(best: &[&str]) -> Opinion {
        let best = best.iter().map(|name| NodeName::new(name)).collect();
        Opinion::Place { best, total: Some(10), feasible: 3 }
    }

    fn hold(message: &str) -> Opinion {
        Opinion::Hold { message: message.to_owned(), by_nodes: true }
    }

    #[test]
    fn any_of_the_best_nodes_agrees() {
        let node = NodeName::new("n1");
        let theirs = Theirs::Placed(&node);
        let judged = |ours: &Opinion, on: NodeOpinion| judge(ours, &on, &theirs);
        let feasible = || NodeOpinion::Feasible { total: Some(9) };
        assert_eq!(judged(&place(&["n0", "n1"]), feasible()), Reason::BestNode);
        assert_eq!(judged(&place(&["n0"]), feasible()), Reason::NotBest);
        let rejected = NodeOpinion::Rejected { reasons: Vec::new() };
        assert_eq!(judged(&place(&["n0"]), rejected), Reason::NodeRejected);
        assert_eq!(judged(&place(&["n0"]), NodeOpinion::Unknown), Reason::NodeUnknown);
        assert_eq!(judged(&hold("why"), NodeOpinion::Unknown), Reason::HeldHere);
        let ours = Opinion::Hold { message: "corridor".to_owned(), by_nodes: false };
        assert_eq!(judged(&ours, feasible()), Reason::OursAlone);
    }

    #[test]
    fn reasons_are_compared_without_order_and_without_preemption() {
        let theirs = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. \
                      preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.";
        let judged = |ours: &str| judge(&hold(ours), &NodeOpinion::Unknown, &Theirs::Held(theirs));
        let same = "0/5 nodes are available: 3 node(s) were unschedulable, 2 Insufficient cpu.";
        assert_eq!(judged(same), Reason::SameReasons);
        let other = "0/5 nodes are available: 4 node(s) were unschedulable, 1 Insufficient cpu.";
        assert_eq!(judged(other), Reason::OtherReasons);
        assert_eq!(judged("no nodes available to schedule pods"), Reason::OtherReasons);
        let placed = judge(&place(&["n"]), &NodeOpinion::Unknown, &Theirs::Held(theirs));
        assert_eq!(placed, Reason::PlacedHere);
    }
}
