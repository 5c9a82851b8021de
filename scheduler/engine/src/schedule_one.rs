//! One attempt to place one Pod, in kube-scheduler's steps: `schedule_one` runs a scheduling cycle, `schedule_pod`
//! finds a Node (PreFilter, Filter, Score), `reserve` takes what the Pod needs, `mark_unschedulable` queues a Pod
//! that was not placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Grant, Granted, Need, NodeName, Pod, PodSpec, PodUid, Reservable};
use rules::{Plugin, Preemption};

use crate::decision::Bind;
use crate::engine::Engine;
use crate::evaluation::Evaluation;
use crate::ledger::Reservation;
use crate::placing::{Diagnosis, PreemptionResult};
use crate::preempt::Clearing;
use crate::queue::{Order, ParkKey, Rank, backoff_after};
use crate::record::Stage;
use crate::rejection::{Cause, NodesRejection, Rejection};
use crate::wakes_on::WakeOn;

/// The Node for a Pod, and the objects whose bandwidth it reserves there.
struct Destination {
    node: NodeName,
    objects: Vec<Reservable>,
}

/// Why a Pod was not placed, and what becomes of its nomination.
struct NotPlaced {
    rejection: Rejection,
    nomination: NominationChange,
}

/// What becomes of the nominated Node of a Pod that was rejected.
enum NominationChange {
    Keep,
    /// Preemption does not help on any Node.
    Clear,
    /// Victims are evicted from this Node to make room.
    Set(Clearing),
}

impl From<Rejection> for NotPlaced {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, nomination: NominationChange::Keep }
    }
}

impl Engine {
    pub(crate) fn schedule_one(&mut self, uid: &PodUid) -> Option<Bind> {
        let record = self.pods.get_mut(uid)?;
        if record.report.in_flight {
            self.move_to(uid, Stage::Reporting);
            return None;
        }
        self.trying = Some(uid.clone());
        let (pod, order, woken_as) = (record.pod.clone(), record.order, record.woken_as.take());
        let key = record.park_key();
        let mut released = Vec::new();
        for need in &pod.spec.needs {
            if self.objects.with_queue(&need.object, |queue| queue.mark_tried(order)) {
                released.push(&need.object);
            }
        }
        let decision = if self.throttle.is_full(&pod.spec.namespace, self.now) {
            self.move_to(uid, Stage::Throttled);
            None
        } else {
            self.scheduling_cycle(&pod, order, &key)
        };
        // The Pod was not placed, so the bandwidth that woke it may be left for the next in the queue.
        for object in released.into_iter().filter(|_| decision.is_none()) {
            self.release_queue(object);
        }
        if let Some(key) = woken_as {
            self.turn_ended(&key, uid);
        }
        self.reconsider_nominations();
        self.trying = None;
        decision
    }

    /// Reserves and binds, or queues the Pod as unschedulable.
    fn scheduling_cycle(&mut self, pod: &Arc<Pod>, order: Order, key: &ParkKey) -> Option<Bind> {
        let NotPlaced { rejection, nomination } = match self.schedule_pod(order, &pod.spec, key) {
            Ok(destination) => return Some(self.reserve(pod, order, destination)),
            Err(not_placed) => not_placed,
        };
        match nomination {
            NominationChange::Keep => {}
            NominationChange::Clear => self.set_nomination(&pod.uid, None),
            NominationChange::Set(clearing) => self.nominate(&pod.uid, clearing),
        }
        if !self.reserve_nominated(&pod.uid) {
            self.set_nomination(&pod.uid, None);
        }
        self.mark_unschedulable(&pod.uid, rejection);
        self.question_nominee(&pod.uid);
        // The Binding that its namespace may have in flight is free again.
        self.release_throttled(&pod.spec.namespace);
        None
    }

    /// The Node and the objects for the Pod, or why there is none.
    fn schedule_pod(
        &mut self,
        order: Order,
        spec: &PodSpec,
        key: &ParkKey,
    ) -> Result<Destination, NotPlaced> {
        if let Some(hold) = &spec.hold {
            return Err(Rejection::Pod(hold.clone()).into());
        }
        let objects = self.pre_filter(order, spec).map_err(Rejection::Object)?;
        let objects: Vec<Reservable> = objects.into_iter().cloned().collect();
        match self.best_node(key) {
            Some(Ok(node)) => return Ok(Destination { node, objects }),
            Some(Err(why)) => return Err(self.not_placed(why)),
            None => {}
        }
        match self.evaluate(key) {
            Evaluation::Failed(why) => Err(Rejection::Failed(why).into()),
            Evaluation::Feasible(placement) => {
                Ok(Destination { node: self.any_of(&placement.best), objects })
            }
            Evaluation::Rejected { rejected, preemption, .. } => {
                let rejection = self.rejected_by_nodes(rejected);
                Err(NotPlaced { rejection, nomination: self.nomination_after(preemption) })
            }
        }
    }

    fn not_placed(&self, why: Diagnosis) -> NotPlaced {
        let Diagnosis { reasons, preemption } = why;
        let (message, nomination) = match preemption {
            PreemptionResult::NotTried => (None, NominationChange::Keep),
            PreemptionResult::NotEligible(why) => (Some(why.to_string()), NominationChange::Keep),
            PreemptionResult::NotHelpful(why) => (Some(why), NominationChange::Clear),
            PreemptionResult::Possible(node, victims) => {
                (None, NominationChange::Set(Clearing { node, victims }))
            }
        };
        let rejection = self.rejected_by_nodes(NodesRejection::of_counts(reasons, message));
        NotPlaced { rejection, nomination }
    }

    /// As in kube-scheduler: a Pod keeps its nomination while its victims terminate, and loses it when preemption
    /// helps on no Node.
    fn nomination_after(&mut self, preemption: Preemption) -> NominationChange {
        match preemption {
            Preemption::NotTried | Preemption::ClaimsNotFound | Preemption::NotEligible(_) => {
                NominationChange::Keep
            }
            Preemption::NotHelpful(_) => NominationChange::Clear,
            Preemption::Possible { mut candidates, best } => {
                let node = self.any_of(&best);
                let victims = candidates.remove(&node).map(|it| it.victims).unwrap_or_default();
                NominationChange::Set(Clearing { node, victims })
            }
        }
    }

    /// One of several equally good Nodes, by the seed.
    fn any_of(&mut self, best: &BTreeSet<NodeName>) -> NodeName {
        let chosen = self.rng.below(best.len());
        let Some(node) = best.iter().nth(chosen) else { unreachable!("some Node is the best") };
        node.clone()
    }

    /// Takes everything that the Pod needs, or nothing. The limits are asserted again: exceeding one would be a bug
    /// here, and the ledger is rolled back before the state becomes visible.
    fn reserve(&mut self, pod: &Arc<Pod>, order: Order, destination: Destination) -> Bind {
        let Destination { node, objects } = destination;
        let mut grant = Grant::default();
        for object in &objects {
            let amount = pod.spec.need_of(&object.object).map(Need::reserves).unwrap_or_default();
            let granted = Granted { uid: object.uid.clone(), amount };
            *grant.part_mut(object.object.kind) = Some(granted);
        }
        let reservation =
            Reservation { node: node.clone(), granted: grant.parts().cloned().collect() };
        let mark = self.ledger.mark();
        let nomination = self.pods.get(&pod.uid).and_then(|record| record.nominated.as_deref());
        if let Some(nomination) = nomination.filter(|it| it.is_reserved) {
            self.ledger.withdraw(order, &nomination.place);
        }
        self.ledger.take(pod, &reservation);
        if let Some(limit) = self.exceeded(&node, pod, &objects) {
            self.ledger.rollback(mark);
            unreachable!("placing {} on {node} would exceed {limit}", pod.key);
        }
        self.ledger.commit();
        self.reservations_changed(&reservation);
        self.question_nominees_of(&reservation);
        self.count_passes(pod, order);
        self.stats.attempts_scheduled += 1;
        if let Some(record) = self.pods.get_mut(&pod.uid) {
            record.rejection = None;
            record.reservation = Some(reservation);
            if let Some(nomination) = &mut record.nominated {
                nomination.is_reserved = false;
            }
        }
        self.move_to(&pod.uid, Stage::Binding { is_unclear: false });
        self.sync_pod_to_cluster(&pod.uid);
        let handles = objects.iter().filter_map(|it| Some((it.object.kind, it.handle.clone()?)));
        let has_references = !objects.is_empty();
        Bind {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node,
            spec: pod.spec.clone(),
            resource_version: has_references.then(|| pod.resource_version.clone()),
            handles: handles.collect(),
            ticket_hashes: objects.iter().filter_map(|it| it.ticket_hash.clone()).collect(),
            grant: has_references.then_some(grant),
        }
    }

    /// Counts a pass for the head of each queue whose bandwidth this Pod took.
    fn count_passes(&mut self, pod: &Pod, order: Order) {
        let now = self.now;
        for need in pod.spec.needs.iter().filter(|need| !need.reserves().is_zero()) {
            let object = &need.object;
            let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
            let rank = Rank { over_quota: over_quota(&pod.spec.namespace), order };
            let passed =
                self.objects.queue(object).and_then(|queue| queue.head_before(rank, &over_quota));
            if let Some(head) = passed {
                self.objects.with_queue(object, |queue| queue.count_pass(head.rank.order, now));
            }
        }
    }

    /// The limit that the Pod exceeds with what has just been taken for it, if any. Counted from the Pods themselves,
    /// independently of the rules that let it pass.
    fn exceeded(&self, node: &NodeName, pod: &Pod, objects: &[Reservable]) -> Option<String> {
        let has = self.placing.limits_of(node)?;
        let asked = &pod.spec.scheduling.requests.asked;
        let used = self.cluster.usage_on(node);
        let is_too_much = |asked: i64, used: i128, has: i64| {
            asked > 0 && used + i128::from(asked) > i128::from(has)
        };
        let is_over = used.pods >= has.pods
            || is_too_much(asked.cpu_milli, used.cpu_milli, has.cpu_milli)
            || is_too_much(asked.memory_bytes, used.memory_bytes, has.memory_bytes);
        if is_over && self.rules_of(&pod.spec.profile).filters_by(Plugin::NodeResourcesFit) {
            return Some(format!("the allocatable resources of node {node}"));
        }
        let over = objects.iter().find(|object| {
            let reserves = pod.spec.need_of(&object.object).is_some_and(|it| it.amount.is_some());
            reserves && self.ledger.reserved(&object.uid) > object.floor()
        });
        over.map(|object| format!("the floor of {}", object.object))
    }

    /// Queues the Pod where the event that may help it (`WakeOn`) will find it.
    fn mark_unschedulable(&mut self, uid: &PodUid, rejection: Rejection) {
        self.stats.attempts_unschedulable += 1;
        let to = match rejection.wake_on() {
            WakeOn::PodChange => Stage::OnHold,
            WakeOn::ObjectFree { object, .. } => Stage::InQueue(Box::new(object)),
            WakeOn::ObjectSpecChange { object }
            | WakeOn::ObjectSpecChangeOrReady { object }
            | WakeOn::PolicyChange { object }
            | WakeOn::DomainChange { object } => Stage::Blocked(Box::new(object)),
            WakeOn::NodeFits => Stage::Parked,
            WakeOn::BackoffEnds => Stage::Backoff,
        };
        let Some(record) = self.pods.get_mut(uid) else { return };
        if to == Stage::Parked {
            record.failures = record.failures.saturating_add(1);
            record.not_before = self.now + backoff_after(record.failures);
        }
        if let Rejection::Object(rejection) = &rejection
            && matches!(rejection.cause, Cause::KeptForHead { .. })
        {
            self.kept.insert(rejection.object.clone(), self.room_changes);
        }
        record.rejection = Some(Box::new(rejection));
        self.reports.unschedulable(self.now, uid, &record.report);
        self.move_to(uid, to);
    }
}
