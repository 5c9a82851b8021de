//! What the engine would do with a Pod that another scheduler places (shadow mode).

use std::collections::BTreeSet;

use model::{NodeName, PodSpec, PodUid};

use crate::engine::Engine;
use crate::evaluation::Evaluation;
use crate::queue::{Order, ParkKey};
use crate::record::Stage;
use crate::rejection::Rejection;

/// A Pod that waits for another scheduler.
#[derive(Clone, Copy, Debug)]
pub struct ForeignPod<'a> {
    pub uid: &'a PodUid,
    pub spec: &'a PodSpec,
    pub nominated: Option<&'a NodeName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    Place {
        /// The Nodes with the highest total: any of them is right.
        best: BTreeSet<NodeName>,
        /// None when there was no choice, so that nothing was scored.
        total: Option<i64>,
        feasible: usize,
    },
    Hold {
        message: String,
        /// The rules of kube-scheduler say so, and not what it does not know.
        by_nodes: bool,
    },
}

/// The opinion on the Node that the other scheduler chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOpinion {
    Feasible { total: Option<i64> },
    Rejected { reasons: Vec<String> },
    Unknown,
}

impl Engine {
    /// Changes nothing. To be called before the engine handles the event that shows what became of the Pod.
    pub fn opinion(
        &self,
        pod: ForeignPod<'_>,
        chosen: Option<&NodeName>,
    ) -> (Opinion, NodeOpinion) {
        let ForeignPod { uid, spec, nominated } = pod;
        let nominated = nominated.map(|node| (node.clone(), uid.clone()));
        let key = ParkKey { nominated, ..ParkKey::of(spec) };
        let nodes_total = self.observed.cluster.nodes.len();
        let last = Order::new(spec.scheduling.priority, i64::MAX, u64::MAX);
        let evaluation = self.evaluate(&key);
        let on_chosen = on_node(&evaluation, chosen);
        let hold = |rejection: Rejection, by_nodes| Opinion::Hold {
            message: rejection.message(nodes_total),
            by_nodes,
        };
        if let Some(held) = &spec.hold {
            return (hold(Rejection::Pod(held.clone()), false), on_chosen);
        }
        if let Err(object) = self.pre_filter(last, spec) {
            return (hold(Rejection::Object(object), false), on_chosen);
        }
        let opinion = match evaluation {
            Evaluation::Feasible(placement) => {
                let total = placement.scores.values().map(|score| score.total).max();
                let feasible = placement.feasible.len();
                Opinion::Place { best: placement.best, total, feasible }
            }
            Evaluation::Rejected { rejected, .. } => hold(Rejection::Nodes(rejected), true),
            Evaluation::Failed(why) => hold(Rejection::Failed(why), true),
        };
        (opinion, on_chosen)
    }

    /// Whether the Pod is known to be on a Node.
    pub fn is_bound(&self, uid: &PodUid) -> bool {
        self.observed.pods.get(uid).is_some_and(|record| matches!(record.stage, Stage::Bound))
    }
}

fn on_node(evaluation: &Evaluation, chosen: Option<&NodeName>) -> NodeOpinion {
    let Some(node) = chosen else { return NodeOpinion::Unknown };
    let rejected = match evaluation {
        Evaluation::Feasible(placement) if placement.feasible.contains(node) => {
            let total = placement.scores.get(node).map(|score| score.total);
            return NodeOpinion::Feasible { total };
        }
        Evaluation::Feasible(placement) => placement.rejected.get(node),
        Evaluation::Rejected { nodes, .. } => nodes.get(node),
        Evaluation::Failed(_) => None,
    };
    match rejected {
        Some(reasons) => {
            NodeOpinion::Rejected { reasons: reasons.iter().map(ToString::to_string).collect() }
        }
        None => NodeOpinion::Unknown,
    }
}
