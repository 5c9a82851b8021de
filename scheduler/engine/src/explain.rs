//! Why a Pod is where it is, in figures. Changes nothing.

use std::fmt::Write as _;
use std::time::Duration;

use model::{Assignment, NodeName, ObjectKey, ObjectRef, PodSpec, PodUid};
use rules::{Preemption, VolumeDiagnosis};

use crate::decision::Work;
use crate::dominant::{Dominant, dominant};
use crate::engine::Engine;
use crate::evaluation::Evaluation;
use crate::queue::{Order, ParkKey, Rank};
use crate::record::{Record, Stage};
use crate::rejection::{NodesRejection, Rejection};
use crate::wakes_on::wakes_on;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub pod: ObjectKey,
    pub state: &'static str,
    pub message: String,
    pub dominant: Option<Dominant>,
    pub nodes: NodesExplained,
    /// Those of its claims that keep it from Nodes.
    pub volumes: VolumeDiagnosis,
    /// The possible victims, or why preemption does not help. `None`: it is not needed.
    pub preemption: Option<PreemptionExplained>,
    /// Its nominated Node.
    pub nominated_node: Option<NodeName>,
    pub waiting_for: Duration,
    pub line: Option<LinePosition>,
    pub wakes_on: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesExplained {
    pub total: usize,
    /// Fewer than all when the budget of a question ends.
    pub looked_at: usize,
    pub feasible: usize,
    /// Those with the highest score: the Pod goes to one of them.
    pub best: Vec<NodeName>,
    pub reasons: Vec<ReasonExplained>,
}

/// kube-scheduler's name of what binds a Pod.
pub(crate) const BINDER: &str = "DefaultBinder";

/// A longer tie is not informative.
const BEST_NAMED_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonExplained {
    pub plugin: String,
    pub reason: String,
    pub count: usize,
    pub examples: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreemptionExplained {
    /// Why it does not help. `None`: it does.
    pub message: Option<String>,
    /// Where the cost is lowest.
    pub nodes: Vec<NodeName>,
    /// The victims on each of them.
    pub victims: Vec<(NodeName, Vec<ObjectKey>)>,
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
        let record = self.observed.pods.named(pod)?;
        let question = Question {
            pod: pod.clone(),
            spec: &record.pod.spec,
            key: record.park_key(),
            order: record.order,
            nodes_max: usize::MAX,
        };
        let mut explanation = self.answer(&question);
        explanation.state = record.stage.name();
        if let Some(node) = record.nominated_node().cloned().filter(|_| record.stage.is_waiting()) {
            let _ = write!(explanation.message, " Room is being made for it on node {node}.");
            explanation.wakes_on.insert(0, format!("its victims leave node {node}"));
            explanation.nominated_node = Some(node);
        }
        explanation.waiting_for = self.now.saturating_since(record.first_seen);
        explanation.line = self.line_position(record);
        if let Some(rejection @ (Rejection::Quarantined | Rejection::Binding(_))) =
            record.rejection.as_deref()
        {
            // What the rules say of it is not why it waits.
            explanation.message = rejection.message(self.observed.cluster.nodes.len());
            explanation.volumes = VolumeDiagnosis::default();
            let plugin = if *rejection == Rejection::Quarantined { "Pod" } else { BINDER };
            explanation.dominant = Some(Dominant::plain(plugin, explanation.message.clone()));
            explanation.wakes_on = vec![rejection.wake_on().to_string()];
        }
        if record.stage == Stage::Throttled {
            let namespace = &record.pod.spec.namespace;
            let open = self.queues.throttle.open(namespace);
            let _ = write!(
                explanation.message,
                "; it waits because the API server fails or takes long to bind Pods of namespace {namespace}: \
                 {open} Bindings there have no outcome yet"
            );
            explanation.wakes_on.insert(0, "one of those Bindings ends".to_owned());
        }
        if !record.stage.is_waiting() {
            explanation.dominant = None;
            explanation.preemption = None;
            explanation.volumes = VolumeDiagnosis::default();
            explanation.wakes_on.clear();
            explanation.message = match (&record.stage, &record.pod.assignment) {
                (Stage::Bound, _) => format!("bound to {}", record.node_name()),
                (_, Assignment::Gated { gates }) => {
                    explanation.wakes_on.push("its scheduling gates are removed".to_owned());
                    let reason = format!("waits for its scheduling gates: {}", gates.join(", "));
                    explanation.dominant = Some(Dominant::plain("SchedulingGates", reason.clone()));
                    reason
                }
                (_, Assignment::Leaving) => "is being deleted".to_owned(),
                (stage, _) => stage.name().to_owned(),
            };
        }
        Some(explanation)
    }

    /// What would become of a Pod with this spec if it came now, last of all.
    pub fn what_if(&self, spec: &PodSpec, budget: Work) -> Explanation {
        self.answer(&Question {
            pod: ObjectKey::new(&spec.namespace, "what-if"),
            spec,
            key: ParkKey::of(spec),
            order: Order::new(spec.scheduling.priority, i64::MAX, u64::MAX),
            nodes_max: budget.nodes_max,
        })
    }

    fn answer(&self, question: &Question<'_>) -> Explanation {
        let Question { spec, key, order, nodes_max, .. } = question;
        let evaluation = self.evaluate_among(key, *nodes_max);
        let rejection = match (&spec.hold, self.pre_filter(*order, spec), &evaluation) {
            (Some(hold), _, _) => Some(Rejection::Pod(hold.clone())),
            (None, Err(rejection), _) => Some(Rejection::Object(rejection)),
            (None, Ok(_), Evaluation::Rejected { rejected, .. }) => {
                let volumes = self.diagnosed(key, rejected);
                let rejected = NodesRejection { volumes, ..rejected.clone() };
                Some(self.rejected_by_nodes(key, rejected))
            }
            (None, Ok(_), Evaluation::Failed(why)) => Some(Rejection::Failed(why.clone())),
            (None, Ok(_), Evaluation::Feasible(_)) => None,
        };
        let total = self.observed.cluster.nodes.len();
        Explanation {
            pod: question.pod.clone(),
            state: if rejection.is_some() { "unschedulable" } else { "schedulable" },
            message: rejection.as_ref().map_or_else(
                || format!("{} of {total} nodes can take it", evaluation.feasible()),
                |rejection| {
                    rejection.message_with(total, self.observed.excluded.message().as_deref())
                },
            ),
            dominant: rejection
                .as_ref()
                .map(|it| dominant(self, &spec.scheduling, it, &evaluation)),
            wakes_on: rejection.iter().flat_map(|it| wakes_on(&spec.scheduling, it)).collect(),
            volumes: match &rejection {
                Some(Rejection::Nodes(NodesRejection { volumes: Some(it), .. })) => (**it).clone(),
                _ => VolumeDiagnosis::default(),
            },
            nodes: NodesExplained { looked_at: total.min(*nodes_max), total, ..nodes(&evaluation) },
            preemption: self.preemption_explained(&evaluation),
            nominated_node: None,
            waiting_for: Duration::ZERO,
            line: None,
        }
    }

    fn preemption_explained(&self, evaluation: &Evaluation) -> Option<PreemptionExplained> {
        let Evaluation::Rejected { preemption, rejected, .. } = evaluation else { return None };
        let Preemption::Possible { candidates, best } = preemption else {
            let message = rejected.preemption.as_deref()?.to_owned();
            return Some(PreemptionExplained { message: Some(message), ..Default::default() });
        };
        let key_of =
            |uid: &PodUid| self.observed.cluster.pods().get(uid).map(|pod| pod.key.clone());
        let victims = best.iter().filter_map(|node| {
            let victims = candidates.get(node)?.victims.iter().filter_map(key_of).collect();
            Some((node.clone(), victims))
        });
        Some(PreemptionExplained {
            message: None,
            nodes: best.iter().take(BEST_NAMED_MAX).cloned().collect(),
            victims: victims.take(BEST_NAMED_MAX).collect(),
        })
    }

    fn line_position(&self, record: &Record) -> Option<LinePosition> {
        let Stage::InQueue(object) = &record.stage else { return None };
        let queue = self.observed.objects.queue(object)?;
        let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
        let over = over_quota(&record.pod.spec.namespace);
        let rank = Rank { over_quota: over, order: record.order };
        let (position, length) = (queue.position(rank, &over_quota), queue.len());
        Some(LinePosition { object: ObjectRef::clone(object), position, length })
    }
}

/// The Pod that is explained.
struct Question<'a> {
    pod: ObjectKey,
    spec: &'a PodSpec,
    key: ParkKey,
    order: Order,
    nodes_max: usize,
}

fn nodes(evaluation: &Evaluation) -> NodesExplained {
    match evaluation {
        Evaluation::Failed(_) => NodesExplained::default(),
        Evaluation::Rejected { rejected, .. } => {
            NodesExplained { reasons: reasons(rejected), ..NodesExplained::default() }
        }
        Evaluation::Feasible(placement) => NodesExplained {
            feasible: placement.feasible.len(),
            best: placement.best.iter().take(BEST_NAMED_MAX).cloned().collect(),
            reasons: reasons(&NodesRejection::of_nodes(&placement.rejected)),
            ..NodesExplained::default()
        },
    }
}

fn reasons(rejected: &NodesRejection) -> Vec<ReasonExplained> {
    let reasons = rejected.reasons.iter().map(|(reason, count)| ReasonExplained {
        plugin: count.reason.plugin().to_string(),
        reason: reason.clone(),
        count: count.nodes,
        examples: count.examples.iter().map(ToString::to_string).collect(),
    });
    reasons.collect()
}
