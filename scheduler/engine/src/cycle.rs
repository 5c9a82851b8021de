//! One attempt to place one Pod: the Pod itself, its Corridor, the Nodes, the reservation.

use std::sync::Arc;

use model::{Corridor, Grant, GrantedCorridor, NodeName, Pod, PodSpec, PodUid};

use crate::corridors::may_use;
use crate::decision::Bind;
use crate::engine::Engine;
use crate::filters::{self, Ask, Candidate, NodeReason};
use crate::ledger::{Holding, NodeUse};
use crate::queue::{Order, backoff_after};
use crate::record::Stage;
use crate::rejection::{CorridorCause, CorridorRejection, NodesRejection, Rejection, WakeOn};
use crate::scores;

/// What all Nodes say of a Pod.
pub(crate) struct Survey<'a> {
    /// The Nodes with the highest score, in order of name.
    pub best: Vec<&'a NodeName>,
    pub feasible: usize,
    pub rejected: NodesRejection,
}

impl Engine {
    pub(crate) fn attempt(&mut self, uid: &PodUid) -> Option<Bind> {
        let record = self.pods.get_mut(uid)?;
        self.trying = Some(uid.clone());
        let (pod, order, woken_for) = (record.pod.clone(), record.order, record.woken_for.take());
        let need = pod.spec.corridor.as_ref();
        let released = need.is_some_and(|need| {
            self.corridors.with_line(&need.corridor, |line| line.mark_tried(order))
        });
        let decision = match self.verdict(order, &pod.spec) {
            Ok((node, granted)) => Some(self.reserve(&pod, order, node, granted)),
            Err(rejection) => {
                self.hold(uid, rejection);
                None
            }
        };
        // What woke this Pod may be left over: then it is the next one's turn.
        if let Some(need) = need.filter(|_| released && decision.is_none()) {
            self.release_line(&need.corridor);
        }
        let took = decision.as_ref().map(|bind| &bind.node);
        if let Some(node) = woken_for.filter(|node| took != Some(node)) {
            self.wake_parked(&node);
        }
        self.trying = None;
        decision
    }

    /// Where the Pod goes and what it is granted, or why nowhere.
    fn verdict(
        &mut self,
        order: Order,
        spec: &PodSpec,
    ) -> Result<(NodeName, Option<GrantedCorridor>), Rejection> {
        if let Some(hold) = &spec.hold {
            return Err(Rejection::Pod(hold.clone()));
        }
        let corridor = self.gate(order, spec).map_err(Rejection::Corridor)?.cloned();
        let granted = corridor.as_ref().zip(spec.corridor.as_ref()).map(|(corridor, need)| {
            GrantedCorridor { uid: corridor.uid.clone(), amount: need.reserves() }
        });
        let ask = Ask { shape: &spec.shape, corridor: corridor.as_ref() };
        let Survey { best, rejected, .. } = self.survey(ask);
        let best: Vec<NodeName> = best.into_iter().cloned().collect();
        match best.len() {
            0 => Err(Rejection::Nodes(rejected)),
            ties => Ok((best[self.rng.below(ties)].clone(), granted)),
        }
    }

    /// Whether the Corridor that the Pod refers to lets it pass now: `None` if it refers to none.
    pub(crate) fn gate(
        &self,
        order: Order,
        spec: &PodSpec,
    ) -> Result<Option<&Corridor>, CorridorRejection> {
        let Some(need) = &spec.corridor else { return Ok(None) };
        let key = &need.corridor;
        let known = self.corridors.get(key).filter(|_| may_use(&spec.namespace, key));
        let mut rejection = CorridorRejection {
            corridor: key.clone(),
            policy: need.failure_policy,
            cause: CorridorCause::Short,
            phase: known.map(|corridor| corridor.phase),
            needed: need.amount,
            free: model::Gbps::ZERO,
            floor: known.map(|corridor| corridor.floor_asked).unwrap_or_default(),
            achievable: known.map(|corridor| corridor.achievable).unwrap_or_default(),
        };
        if !may_use(&spec.namespace, key) {
            rejection.cause = CorridorCause::OtherNamespace;
            return Err(rejection);
        }
        if known.is_some_and(|corridor| need.reserves() > corridor.floor_asked) {
            rejection.cause = CorridorCause::MoreThanFloor;
            return Err(rejection);
        }
        let promise = match self.corridors.promise(key, self.now) {
            Ok(promise) => promise,
            Err(cause) => return Err(CorridorRejection { cause, ..rejection }),
        };
        rejection.floor = promise.reservable;
        rejection.free =
            promise.reservable.saturating_sub(self.ledger.reserved(&promise.corridor.uid));
        if need.reserves() > rejection.free {
            return Err(rejection);
        }
        let line = self.corridors.line(key).filter(|_| !need.reserves().is_zero());
        if let Some(line) = line
            && let Some(head) = line.head_before(order)
            && self.is_kept_for(key, head.order, &head.pod)
            && let Some(record) = self.pods.get(&head.pod)
        {
            rejection.cause = CorridorCause::KeptForHead {
                head: record.pod.key.clone(),
                times_passed: line.times_passed(head.order),
            };
            return Err(rejection);
        }
        Ok(Some(promise.corridor))
    }

    pub(crate) fn survey(&self, ask: Ask<'_>) -> Survey<'_> {
        let unused = NodeUse::default();
        let mut survey =
            Survey { best: Vec::new(), feasible: 0, rejected: NodesRejection::default() };
        let mut best_score = i64::MIN;
        let mut reasons: Vec<NodeReason> = Vec::new();
        for (name, node) in &self.nodes {
            let used = self.ledger.node(name).unwrap_or(&unused);
            let candidate = Candidate { node, used };
            filters::rejections(ask, candidate, &mut reasons);
            for reason in &reasons {
                survey.rejected.count(reason, name);
            }
            if !reasons.is_empty() {
                continue;
            }
            survey.feasible += 1;
            let score = scores::total(ask, candidate);
            if score > best_score {
                best_score = score;
                survey.best.clear();
            }
            if score == best_score {
                survey.best.push(name);
            }
        }
        survey
    }

    pub(crate) fn fits_some_node(&self, spec: &PodSpec) -> bool {
        let corridor = spec.corridor.as_ref().and_then(|need| self.corridors.get(&need.corridor));
        self.survey(Ask { shape: &spec.shape, corridor }).feasible > 0
    }

    /// Takes what the Pod was promised. The limits are asserted again: were one exceeded, the
    /// fault would be ours, and everything taken is put back before anybody can see it.
    fn reserve(
        &mut self,
        pod: &Arc<Pod>,
        order: Order,
        node: NodeName,
        granted: Option<GrantedCorridor>,
    ) -> Bind {
        let mark = self.ledger.mark();
        self.ledger.take_node(&node, &pod.spec.shape);
        if let Some(granted) = &granted {
            self.ledger.take_corridor(granted);
        }
        if let Some(limit) = self.exceeded(&node, pod) {
            self.ledger.rollback(mark);
            unreachable!("placing {} on {node} would exceed {limit}", pod.key);
        }
        self.ledger.commit();
        let corridor = pod.spec.corridor.as_ref().map(|need| &need.corridor);
        if let (Some(key), Some(granted)) = (corridor, &granted)
            && !granted.amount.is_zero()
        {
            let now = self.now;
            self.corridors.with_line(key, |line| {
                if let Some(head) = line.head_before(order) {
                    line.count_pass(head.order, now);
                }
            });
        }
        let corridor_id = corridor
            .and_then(|key| self.corridors.get(key))
            .and_then(|corridor| corridor.corridor_id.clone());
        self.stats.attempts_scheduled += 1;
        if let Some(record) = self.pods.get_mut(&pod.uid) {
            record.rejection = None;
            record.holding = Some(Holding {
                node: node.clone(),
                shape: pod.spec.shape.clone(),
                corridor: granted.clone(),
            });
        }
        self.move_to(&pod.uid, Stage::Binding { outcome_unclear: false });
        Bind {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node,
            spec: pod.spec.clone(),
            resource_version: corridor.map(|_| pod.resource_version.clone()),
            corridor_id,
            grant: granted.map(|granted| Grant { corridor: Some(granted), bundle: None }),
        }
    }

    /// The limit that is exceeded with what has just been taken for the Pod, if any.
    fn exceeded(&self, node: &NodeName, pod: &Pod) -> Option<String> {
        let (has, used) = (self.nodes.get(node)?, self.ledger.node(node)?);
        let asked = &pod.spec.shape.requests;
        if used.pods > has.pods_max
            || asked.cpu_milli > 0 && used.requests.cpu_milli > has.allocatable.cpu_milli
            || asked.memory_bytes > 0 && used.requests.memory_bytes > has.allocatable.memory_bytes
        {
            return Some(format!("the allocatable resources of node {node}"));
        }
        let need = pod.spec.corridor.as_ref().filter(|need| need.amount.is_some())?;
        let promise = self.corridors.promise(&need.corridor, self.now).ok()?;
        (self.ledger.reserved(&promise.corridor.uid) > promise.reservable)
            .then(|| format!("the floor of corridor {}", need.corridor))
    }

    /// Puts the Pod where its wake-up will find it.
    fn hold(&mut self, uid: &PodUid, rejection: Rejection) {
        self.stats.attempts_unschedulable += 1;
        let to = match rejection.wake_on() {
            WakeOn::PodChange => Stage::Held,
            WakeOn::CorridorFree { corridor, .. } => Stage::InLine(corridor),
            WakeOn::CorridorSpecChange { corridor }
            | WakeOn::CorridorSpecChangeOrReady { corridor } => Stage::Aside(corridor),
            WakeOn::NodeFits => Stage::Parked,
        };
        let Some(record) = self.pods.get_mut(uid) else { return };
        if to == Stage::Parked {
            record.failures = record.failures.saturating_add(1);
            record.not_before = self.now + backoff_after(record.failures);
        }
        record.rejection = Some(rejection);
        self.reports.held(self.now, uid, &record.report);
        self.move_to(uid, to);
    }
}
