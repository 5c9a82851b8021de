//! One attempt, in kube-scheduler's steps: `schedule_one` runs a `scheduling_cycle`. In it `place_unit` (transaction.rs)
//! calls `schedule_pod` for each Pod (PreFilter, Filter, Score), then `place` (Reserve), and commits. `mark_unschedulable`
//! queues a Pod that was not placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{NodeName, Pod, PodSpec, PodUid, Reservable};
use rules::Preemption;

use crate::decision::Action;
use crate::engine::Engine;
use crate::evaluation::Evaluation;
use crate::placing::{Diagnosis, PreemptionResult};
use crate::preempt::PreemptionPlan;
use crate::queue::{Order, ParkKey, backoff_after};
use crate::record::Stage;
use crate::rejection::{Cause, NodesRejection, Rejection};
use crate::transaction::{UnitOutcome, UnitPod};
use crate::wakes_on::WakeOn;

/// The Node for a Pod, and the objects whose bandwidth it reserves there.
pub(crate) struct Destination {
    pub node: NodeName,
    pub objects: Vec<Reservable>,
}

/// Why a Pod was not placed, and what becomes of its nomination.
pub(crate) struct NotPlaced {
    pub rejection: Rejection,
    nomination: NominationChange,
}

/// What becomes of the nominated Node of a Pod that was rejected.
enum NominationChange {
    Keep,
    /// Preemption does not help on any Node.
    Remove,
    /// Victims are evicted from this Node to make room.
    Set(Box<PreemptionPlan>),
}

impl From<Rejection> for NotPlaced {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, nomination: NominationChange::Keep }
    }
}

impl Engine {
    /// What is to be done now, if anything: a Pod that was placed may wait for others.
    pub(crate) fn schedule_one(&mut self, uid: &PodUid) -> Option<Action> {
        let record = self.observed.pods.get_mut(uid)?;
        if record.report.in_flight {
            self.move_to(uid, Stage::Reporting);
            return None;
        }
        self.trying = Some(uid.clone());
        let (pod, order, woken_as) = (record.pod.clone(), record.order, record.woken_as.take());
        let key = record.park_key();
        let mut released = Vec::new();
        for need in &pod.spec.needs {
            if self.observed.objects.with_queue(&need.object, |queue| queue.mark_tried(order)) {
                released.push(&need.object);
            }
        }
        let placed = if self.queues.throttle.is_full(&pod.spec.namespace, self.now) {
            self.move_to(uid, Stage::Throttled);
            None
        } else {
            self.scheduling_cycle(&pod, order, &key)
        };
        // The Pod was not placed, so the bandwidth that woke it may be left for the next in the queue.
        let is_placed = self.is_placed(uid);
        for object in released.into_iter().filter(|_| !is_placed) {
            self.release_queue(object);
        }
        if let Some(key) = woken_as {
            self.turn_ended(&key, uid);
        }
        self.reconsider_nominations();
        self.trying = None;
        placed.and_then(|actions| actions.into_iter().next())
    }

    /// Reserves and begins the binding cycle, or queues the Pod as unschedulable.
    fn scheduling_cycle(
        &mut self,
        pod: &Arc<Pod>,
        order: Order,
        key: &ParkKey,
    ) -> Option<Vec<Action>> {
        let unit = [UnitPod { pod, order, key }];
        let (pod, NotPlaced { rejection, nomination }) = match self.place_unit(&unit) {
            UnitOutcome::Placed(actions) => return Some(actions),
            UnitOutcome::NotPlaced { number, why } => (unit[number].pod, why),
        };
        match nomination {
            NominationChange::Keep => {}
            NominationChange::Remove => self.set_nomination(&pod.uid, None),
            NominationChange::Set(clearing) => self.nominate(&pod.uid, *clearing),
        }
        if !self.reserve_nominated(&pod.uid) {
            self.set_nomination(&pod.uid, None);
        }
        if let Some(deallocation) = self.deallocate_for(pod, &rejection) {
            return Some(vec![deallocation]);
        }
        self.mark_unschedulable(&pod.uid, rejection);
        self.recheck_nomination(&pod.uid);
        // The Binding that its namespace may have in flight is free again.
        self.release_throttled(&pod.spec.namespace);
        None
    }

    /// The Node and the objects for the Pod, or why there is none.
    pub(crate) fn schedule_pod(
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
            Some(Err(why)) => return Err(self.not_placed(key, why)),
            None => {}
        }
        if let Some(rejected) = self.rejected_as_whole(key) {
            return Err(self.rejected_by_nodes(key, rejected).into());
        }
        match self.evaluate(key) {
            Evaluation::Failed(why) => Err(Rejection::Failed(why).into()),
            Evaluation::Feasible(placement) => {
                Ok(Destination { node: self.any_of(&placement.best), objects })
            }
            Evaluation::Rejected { rejected, preemption, .. } => {
                let rejection = self.rejected_by_nodes(key, rejected);
                Err(NotPlaced { rejection, nomination: self.nomination_after(preemption) })
            }
        }
    }

    fn not_placed(&self, key: &ParkKey, why: Diagnosis) -> NotPlaced {
        let Diagnosis { reasons, preemption } = why;
        let (message, nomination) = match preemption {
            PreemptionResult::NotTried => (None, NominationChange::Keep),
            PreemptionResult::NotEligible(why) => (Some(why.to_string()), NominationChange::Keep),
            PreemptionResult::NotHelpful(why) => (Some(why), NominationChange::Remove),
            PreemptionResult::Possible(node, victims) => {
                (None, NominationChange::Set(Box::new(PreemptionPlan { node, victims })))
            }
        };
        let rejection = self.rejected_by_nodes(key, NodesRejection::of_counts(reasons, message));
        NotPlaced { rejection, nomination }
    }

    /// As in kube-scheduler: a Pod keeps its nomination while its victims terminate, and loses it when preemption
    /// helps on no Node.
    fn nomination_after(&mut self, preemption: Preemption) -> NominationChange {
        match preemption {
            Preemption::NotTried | Preemption::ClaimsNotFound | Preemption::NotEligible(_) => {
                NominationChange::Keep
            }
            Preemption::NotHelpful(_) => NominationChange::Remove,
            Preemption::Possible { mut candidates, best } => {
                let node = self.any_of(&best);
                let victims = candidates.remove(&node).map(|it| it.victims).unwrap_or_default();
                NominationChange::Set(Box::new(PreemptionPlan { node, victims }))
            }
        }
    }

    /// One of several equally good Nodes, by the seed.
    pub(crate) fn any_of(&mut self, best: &BTreeSet<NodeName>) -> NodeName {
        let chosen = self.rng.below(best.len());
        let Some(node) = best.iter().nth(chosen) else { unreachable!("some Node is the best") };
        node.clone()
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
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        if matches!(to, Stage::Parked | Stage::Backoff) {
            record.failures = record.failures.saturating_add(1);
            record.not_before = self.now + backoff_after(record.failures);
        }
        if let Rejection::Object(rejection) = &rejection
            && matches!(rejection.cause, Cause::KeptForHead { .. })
        {
            self.queues.kept.insert(rejection.object.clone(), self.queues.room_changes);
        }
        record.rejection = Some(Box::new(rejection));
        self.outbox.reports.unschedulable(self.now, uid, &record.report);
        self.move_to(uid, to);
    }
}
