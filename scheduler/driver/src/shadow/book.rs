//! What shadow mode has found so far.

use std::collections::{BTreeMap, VecDeque};

use engine::{NodeOpinion, Opinion};
use jiff::Timestamp;
use model::ObjectKey;
use prometheus::{Gauge, IntCounterVec, Opts, Registry};
use tracing::info;

use super::comparison::{Reason, Theirs};
use crate::clock::wall_clock;

/// Disagreements that are kept with both sides; the oldest go first.
const KEPT_MAX: usize = 1_000;
/// Equally good Nodes that are named.
const NODES_NAMED_MAX: usize = 16;

#[derive(Debug)]
pub struct ShadowBook {
    scheduler_name: String,
    counts: BTreeMap<Reason, u64>,
    disagreements: VecDeque<api::Disagreement>,
    dropped: u64,
    since: Timestamp,
    total: IntCounterVec,
    ratio: Gauge,
}

impl ShadowBook {
    pub fn new(scheduler_name: &str, registry: &Registry) -> Result<Self, prometheus::Error> {
        let total = Opts::new(
            "corridor_shadow_decisions_total",
            "Decisions of the other scheduler that were compared, by result (agree, disagree) and reason.",
        );
        let total = IntCounterVec::new(total, &["result", "reason"])?;
        for reason in Reason::ALL {
            total.with_label_values(&[result(reason), reason.label()]).reset();
        }
        let ratio = Gauge::new(
            "corridor_shadow_agreement_ratio",
            "The share of compared decisions that agree. NaN until there is one.",
        )?;
        ratio.set(f64::NAN);
        registry.register(Box::new(total.clone()))?;
        registry.register(Box::new(ratio.clone()))?;
        Ok(Self {
            scheduler_name: scheduler_name.to_owned(),
            counts: BTreeMap::new(),
            disagreements: VecDeque::new(),
            dropped: 0,
            since: wall_clock(),
            total,
            ratio,
        })
    }

    pub(super) fn enter(
        &mut self,
        pod: &ObjectKey,
        reason: Reason,
        ours: &Opinion,
        on_theirs: &NodeOpinion,
        theirs: &Theirs<'_>,
    ) {
        *self.counts.entry(reason).or_default() += 1;
        self.total.with_label_values(&[result(reason), reason.label()]).inc();
        self.ratio.set(self.agreement().unwrap_or(f64::NAN));
        if reason.agrees() {
            return;
        }
        info!(%pod, reason = reason.label(), ?theirs, ?ours, "the other scheduler decided otherwise");
        if self.disagreements.len() >= KEPT_MAX {
            self.disagreements.pop_front();
            self.dropped += 1;
        }
        self.disagreements.push_back(api::Disagreement {
            pod: pod.to_string(),
            at: wall_clock().to_string(),
            reason: reason.label().to_owned(),
            ours: our_side(ours),
            theirs: their_side(theirs, on_theirs),
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "a share, not an account")]
    fn agreement(&self) -> Option<f64> {
        let sum = |agrees: bool| {
            let counted = self.counts.iter().filter(|(reason, _)| reason.agrees() || !agrees);
            counted.map(|(_, count)| count).sum::<u64>()
        };
        let (agree, all) = (sum(true), sum(false));
        (all > 0).then(|| agree as f64 / all as f64)
    }

    /// `/api/shadow`.
    pub fn report(&self) -> api::Shadow {
        let count = |it: &Reason| self.counts.get(it).copied().unwrap_or(0);
        api::Shadow {
            scheduler_name: self.scheduler_name.clone(),
            since: self.since.to_string(),
            compared: self.counts.values().sum(),
            agreement: self.agreement(),
            by_reason: Reason::ALL.iter().map(|it| (it.label().to_owned(), count(it))).collect(),
            disagreements: self.disagreements.iter().cloned().collect(),
            disagreements_dropped: self.dropped,
        }
    }
}

fn result(reason: Reason) -> &'static str {
    if reason.agrees() { "agree" } else { "disagree" }
}

fn our_side(ours: &Opinion) -> api::OurDecision {
    match ours {
        Opinion::Place { best, total, feasible } => api::OurDecision::Place {
            nodes: best.iter().take(NODES_NAMED_MAX).map(ToString::to_string).collect(),
            equally_good: best.len(),
            score: *total,
            feasible: *feasible,
        },
        Opinion::Hold { message, .. } => api::OurDecision::Hold { message: message.clone() },
    }
}

/// What it did, and what we think of that.
fn their_side(theirs: &Theirs<'_>, on_theirs: &NodeOpinion) -> api::TheirDecision {
    let node = match theirs {
        Theirs::Held(message) => {
            return api::TheirDecision::Held { message: (*message).to_owned() };
        }
        Theirs::Placed(node) => node.to_string(),
    };
    let (score_here, rejected_here) = match on_theirs {
        NodeOpinion::Feasible { total } => (*total, None),
        NodeOpinion::Rejected { reasons } => (None, Some(reasons.clone())),
        NodeOpinion::Unknown => (None, None),
    };
    api::TheirDecision::Placed { node, score_here, rejected_here }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::NodeName;
    use serde_json::json;

    #[test]
    fn agreement_is_counted_and_each_disagreement_is_kept_with_both_sides() {
        let registry = Registry::new();
        let mut book = ShadowBook::new("default-scheduler", &registry).unwrap();
        assert_eq!(book.report().agreement, None);
        let node = NodeName::new("n1");
        let theirs = Theirs::Placed(&node);
        let best = [NodeName::new("n2")].into();
        let ours = Opinion::Place { best, total: Some(7), feasible: 3 };
        let on = NodeOpinion::Feasible { total: Some(5) };
        let key = ObjectKey::new("a", "p");
        book.enter(&key, Reason::BestNode, &ours, &on, &theirs);
        book.enter(&key, Reason::NotBest, &ours, &on, &theirs);
        let report = serde_json::to_value(book.report()).unwrap();
        assert_eq!((&report["compared"], &report["agreement"]), (&json!(2), &json!(0.5)));
        let kept = &report["disagreements"][0];
        assert_eq!((&kept["ours"]["score"], &kept["theirs"]["scoreHere"]), (&json!(7), &json!(5)));
        for _ in 0..KEPT_MAX {
            book.enter(&key, Reason::NotBest, &ours, &on, &theirs);
        }
        let report = book.report();
        assert_eq!((report.disagreements.len(), report.disagreements_dropped), (KEPT_MAX, 1));
    }
}
