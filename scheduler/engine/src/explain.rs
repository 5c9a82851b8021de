//! Why a Pod is where it is, in figures. Changes nothing.

use std::time::Duration;

use model::{NodeName, ObjectKey, ObjectRef, PodSpec};

use crate::decision::Work;
use crate::engine::Engine;
use crate::filters::Ask;
use crate::line::Rank;
use crate::queue::Order;
use crate::record::{Record, Stage};
use crate::rejection::{NodesRejection, ObjectRejection, Rejection};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub pod: ObjectKey,
    pub state: &'static str,
    pub message: String,
    pub dominant: Option<Dominant>,
    pub nodes: NodesExplained,
    pub waiting_for: Duration,
    pub line: Option<LinePosition>,
    pub wakes_on: Vec<String>,
}

/// The one thing that stands most in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dominant {
    pub plugin: &'static str,
    pub reason: String,
    pub object: Option<ObjectRef>,
    /// Amounts in thousandths of `unit`.
    pub needed_milli: u64,
    pub free_milli: u64,
    pub deficit_milli: u64,
    pub unit: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesExplained {
    pub total: usize,
    pub feasible: usize,
    /// Those with the highest score: the Pod goes to one of them.
    pub best: Vec<NodeName>,
    pub reasons: Vec<ReasonExplained>,
}

/// A tie of more than this tells nobody anything.
const BEST_NAMED_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonExplained {
    pub plugin: &'static str,
    pub reason: String,
    pub count: usize,
    pub examples: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePosition {
    pub object: ObjectRef,
    pub position: usize,
    pub length: usize,
}

impl Engine {
    /// Explains a Pod that the engine knows; `None` if it knows no such Pod.
    pub fn explain(&self, pod: &ObjectKey) -> Option<Explanation> {
        let record = self.pods.get(self.uids.get(pod)?)?;
        let mut explanation = self.explain_spec(pod, &record.pod.spec, record.order);
        explanation.state = record.stage.name();
        explanation.waiting_for = self.now.saturating_since(record.first_seen);
        explanation.line = self.line_position(record);
        if !record.stage.is_waiting() {
            explanation.message = match &record.stage {
                Stage::Bound(node) => format!("bound to {node}"),
                stage => stage.name().to_owned(),
            };
            explanation.dominant = None;
            explanation.wakes_on.clear();
        }
        Some(explanation)
    }

    /// What would become of a Pod with this spec if it came now, last of all.
    pub fn what_if(&self, spec: &PodSpec, budget: Work) -> Explanation {
        let key = ObjectKey::new(&spec.namespace, "what-if");
        let last = Order::new(spec.priority, i64::MAX, u64::MAX);
        let mut explanation = self.explain_spec(&key, spec, last);
        if budget.attempts_max == 0 {
            explanation.nodes = NodesExplained::default();
        }
        explanation
    }

    fn explain_spec(&self, pod: &ObjectKey, spec: &PodSpec, order: Order) -> Explanation {
        let objects = self.objects_of(spec);
        let survey = self.survey(Ask { shape: &spec.shape, objects: &objects });
        let rejection = match (&spec.hold, self.gate(order, spec)) {
            (Some(hold), _) => Some(Rejection::Pod(hold.clone())),
            (None, Err(rejection)) => Some(Rejection::Object(rejection)),
            (None, Ok(_)) if survey.feasible == 0 => {
                Some(Rejection::Nodes(survey.rejected.clone()))
            }
            (None, Ok(_)) => None,
        };
        let total = self.nodes.len();
        Explanation {
            pod: pod.clone(),
            state: if rejection.is_some() { "unschedulable" } else { "schedulable" },
            message: rejection.as_ref().map_or_else(
                || format!("{} of {total} nodes can take it", survey.feasible),
                |rejection| rejection.message(total),
            ),
            dominant: rejection.as_ref().map(dominant),
            wakes_on: rejection.iter().map(|rejection| rejection.wake_on().to_string()).collect(),
            nodes: NodesExplained {
                total,
                feasible: survey.feasible,
                best: survey.best.iter().take(BEST_NAMED_MAX).map(|name| (*name).clone()).collect(),
                reasons: reasons(&survey.rejected),
            },
            waiting_for: Duration::ZERO,
            line: None,
        }
    }

    fn line_position(&self, record: &Record) -> Option<LinePosition> {
        let Stage::InLine(object) = &record.stage else { return None };
        let line = self.objects.line(object)?;
        let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
        let over = over_quota(&record.pod.spec.namespace);
        let rank = Rank { over_quota: over, order: record.order };
        let (position, length) = (line.position(rank, &over_quota), line.len());
        Some(LinePosition { object: object.clone(), position, length })
    }
}

fn reasons(rejected: &NodesRejection) -> Vec<ReasonExplained> {
    let reasons = rejected.reasons.iter().map(|(reason, count)| ReasonExplained {
        plugin: reason.plugin(),
        reason: reason.to_string(),
        count: count.nodes,
        examples: count.examples.iter().map(ToString::to_string).collect(),
    });
    reasons.collect()
}

fn dominant(rejection: &Rejection) -> Dominant {
    let plain = |plugin, reason| Dominant {
        plugin,
        reason,
        object: None,
        needed_milli: 0,
        free_milli: 0,
        deficit_milli: 0,
        unit: "",
    };
    match rejection {
        Rejection::Pod(hold) => plain("Pod", hold.to_string()),
        Rejection::Quarantined => plain("Pod", "quarantined".to_owned()),
        Rejection::Nodes(rejected) => {
            let most = rejected.reasons.iter().max_by_key(|(_, count)| count.nodes);
            most.map_or_else(
                || plain("", "no nodes available to schedule pods".to_owned()),
                |(reason, _)| plain(reason.plugin(), reason.to_string()),
            )
        }
        Rejection::Object(rejection) => object_dominant(rejection),
    }
}

fn object_dominant(rejection: &ObjectRejection) -> Dominant {
    Dominant {
        plugin: "Corridor",
        reason: rejection.to_string(),
        object: Some(rejection.object.clone()),
        needed_milli: rejection.needed.unwrap_or_default().milli(),
        free_milli: rejection.free.milli(),
        deficit_milli: rejection.deficit().milli(),
        unit: rejection.object.kind.unit(),
    }
}
