//! What becomes of a Pod that is seen, changed or gone.

use std::sync::Arc;

use model::{Assignment, Pod, PodUid};

use crate::engine::Engine;
use crate::ledger::Reservation;
use crate::queue::Order;
use crate::queue_metrics::AttemptHistory;
use crate::record::{BindingStep, Record, Stage};
use crate::reports::ReportState;

impl Engine {
    pub(super) fn pod_seen(&mut self, pod: Pod) {
        // A Pod keeps its name for life: what says otherwise is not the Pod that we know.
        if self.observed.pods.get(&pod.uid).is_some_and(|known| known.pod.key != pod.key) {
            return;
        }
        self.readmit(&pod.uid);
        let named = self.observed.pods.named(&pod.key).map(|record| &record.pod.uid);
        if let Some(earlier) = named.filter(|uid| **uid != pod.uid).cloned() {
            self.pod_gone(&earlier);
        }
        let uid = pod.uid.clone();
        if pod.assignment == Assignment::Foreign {
            self.foreign_seen(&pod);
            return;
        }
        self.foreign_gone(&uid);
        let is_new = !self.observed.pods.contains_key(&uid);
        if is_new {
            self.insert_record(&pod);
        }
        match pod.assignment.clone() {
            Assignment::Bound { node, grant } => {
                let granted = grant.iter().flat_map(|grant| grant.parts()).cloned().collect();
                self.pod_bound(
                    pod,
                    Reservation { node, granted, volumes: None, claims: Box::default() },
                );
            }
            Assignment::Finished => self.dequeue(pod, Stage::Finished),
            Assignment::Gated { .. } | Assignment::Leaving | Assignment::Foreign => {
                self.dequeue(pod, Stage::Gated);
            }
            Assignment::Waiting => self.pod_waits(pod, is_new),
        }
    }

    fn insert_record(&mut self, pod: &Pod) {
        let order = Order::new(
            pod.spec.scheduling.priority,
            pod.created_at_unix_s,
            self.observed.pods_seen,
        );
        self.observed.pods_seen += 1;
        let record = Record {
            pod: Arc::new(pod.clone()),
            order,
            stage: Stage::Gated,
            reservation: None,
            failures: 0,
            not_before: self.now,
            first_seen: self.now,
            nominated: None,
            parked_as: None,
            woken_as: None,
            rejection: None,
            report: ReportState::default(),
            attempts: AttemptHistory::default(),
            prepared: None,
        };
        *self.stats.of_stage(&record.stage) += 1;
        self.observed.pods.insert(record);
    }

    /// A Pod on a Node counts there, also if another scheduler bound it.
    ///
    /// What it holds of an object is what was granted when it was bound: a later edit of its
    /// annotations neither lowers nor raises it.
    fn pod_bound(&mut self, pod: Pod, seen: Reservation) {
        let uid = pod.uid.clone();
        self.stop_waiting(&uid);
        self.forget_in_queue(&uid);
        if matches!(self.stage_of(&uid), Some(Stage::Binding(_))) {
            self.move_to(&uid, Stage::Binding(BindingStep::SENT));
        }
        let Some(record) = self.observed.pods.get_mut(&uid) else { return };
        let before = record.reservation.take();
        let mut reservation = seen;
        // Also while the reply to its Binding is still awaited: what was decided is what was granted.
        let is_placed = matches!(record.stage, Stage::Bound | Stage::Binding(_));
        let known = before.as_ref().filter(|before| is_placed && before.node == reservation.node);
        if let Some(known) = known {
            reservation.granted.clone_from(&known.granted);
        }
        let pod = Arc::new(pod);
        record.pod = pod.clone();
        record.reservation = Some(reservation.clone());
        if before.as_ref() != Some(&reservation) {
            if let Some(before) = &before {
                self.ledger.release(&pod, before);
                self.forget_objects(&uid, before);
                self.reservations_changed(before);
            }
            self.ledger.take(&pod, &reservation);
            self.ledger.commit();
            self.reservations_changed(&reservation);
            self.recheck_nominations_reserving(&reservation);
        }
        self.move_to(&uid, Stage::Bound);
        self.set_nomination(&uid, None);
        self.sync_pod_to_cluster(&uid);
        if let Some(before) = before.filter(|before| *before != reservation) {
            self.wake_after_release(&before);
        }
    }

    /// Finished Pods give back what they held; gated and leaving ones are not placed.
    fn dequeue(&mut self, pod: Pod, to: Stage) {
        let uid = pod.uid.clone();
        let settled =
            matches!(self.stage_of(&uid), Some(Stage::Bound | Stage::Binding(_) | Stage::Finished));
        if settled && to == Stage::Gated {
            // An older sight of a Pod that we know to be bound, or that may be any moment. If
            // its Binding is refused, it rests.
            self.update_while_binding(pod);
            return;
        }
        self.leave_for_good(&uid, to);
        if let Some(record) = self.observed.pods.get_mut(&uid) {
            record.pod = Arc::new(pod);
        }
    }

    fn pod_waits(&mut self, pod: Pod, is_new: bool) {
        let uid = pod.uid.clone();
        let Some(record) = self.observed.pods.get_mut(&uid) else { return };
        let before = record.pod.clone();
        match record.stage {
            // Neither an assignment nor an end is ever taken back: this sight is older than
            // our knowledge.
            Stage::Bound | Stage::Finished => return,
            Stage::Binding(_) => {
                self.update_while_binding(pod);
                return;
            }
            Stage::Gated => {}
            _ if before.spec == pod.spec => {
                record.pod = Arc::new(pod);
                return;
            }
            _ => {}
        }
        let nomination = self.nomination_read(&pod).filter(|_| is_new);
        if !is_new {
            // The nomination was made for another spec.
            self.set_nomination(&uid, None);
            self.stop_waiting(&uid);
            self.move_to(&uid, Stage::Gated);
        }
        let Some(record) = self.observed.pods.get_mut(&uid) else { return };
        record.order = record.order.with_priority(pod.spec.scheduling.priority);
        record.failures = 0;
        record.not_before = self.now;
        record.rejection = None;
        record.pod = Arc::new(pod);
        record.prepare();
        self.move_to(&uid, Stage::Active);
        if let Some(nomination) = nomination {
            self.set_nomination(&uid, Some(nomination));
        }
        self.sync_pod_to_cluster(&uid);
    }

    /// Should the Binding be refused, the Pod goes on as it is now.
    fn update_while_binding(&mut self, pod: Pod) {
        let uid = pod.uid.clone();
        let Some(record) = self.observed.pods.get(&uid) else { return };
        if !matches!(record.stage, Stage::Binding(_)) {
            return;
        }
        let is_other_spec = record.pod.spec != pod.spec;
        let is_other = is_other_spec || pod.assignment != Assignment::Waiting;
        if is_other_spec {
            self.forget_in_queue(&uid);
            self.set_nomination(&uid, None);
        }
        if let Some(record) = self.observed.pods.get_mut(&uid) {
            record.pod = Arc::new(pod);
        }
        self.sync_pod_to_cluster(&uid);
        if is_other {
            self.abandon_unsent(&uid);
        }
    }

    pub(super) fn pod_gone(&mut self, uid: &PodUid) {
        self.readmit(uid);
        self.foreign_gone(uid);
        self.outbox.evictions.forget(uid);
        self.leave_for_good(uid, Stage::Finished);
        let Some(record) = self.observed.pods.remove(uid) else { return };
        *self.stats.of_stage(&record.stage) -= 1;
        self.outbox.reports.forget(uid);
    }

    /// Removes the Pod from the queue that it waits in or was released from.
    fn stop_waiting(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        let (order, woken_as) = (record.order, record.woken_as.take());
        let spec = record.pod.spec.clone();
        if !record.stage.is_waiting() {
            return;
        }
        self.move_to(uid, Stage::OnHold);
        for need in &spec.needs {
            self.observed.objects.with_queue(&need.object, |queue| queue.forget(order));
            self.release_queue(&need.object);
        }
        if let Some(key) = woken_as {
            self.turn_ended(&key, uid);
        }
    }

    /// The Pod waits for nothing and holds nothing any more.
    fn leave_for_good(&mut self, uid: &PodUid, to: Stage) {
        self.set_nomination(uid, None);
        self.stop_waiting(uid);
        self.move_to(uid, to);
        self.give_back(uid);
        self.sync_pod_to_cluster(uid);
        self.forget_in_queue(uid);
    }

    pub(crate) fn forget_in_queue(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get(uid) else { return };
        for need in &record.pod.spec.needs {
            self.observed.objects.with_queue(&need.object, |queue| queue.forget(record.order));
        }
    }

    pub(crate) fn give_back(&mut self, uid: &PodUid) {
        let Some(reservation) = self.release_reservation(uid) else { return };
        self.sync_pod_to_cluster(uid);
        self.wake_after_release(&reservation);
    }

    /// Frees what the Pod has reserved; no Pod is woken yet.
    pub(crate) fn release_reservation(&mut self, uid: &PodUid) -> Option<Reservation> {
        let record = self.observed.pods.get_mut(uid)?;
        let reservation = record.reservation.take()?;
        self.ledger.release(&record.pod, &reservation);
        self.forget_objects(uid, &reservation);
        self.reservations_changed(&reservation);
        Some(reservation)
    }

    pub(crate) fn reservations_changed(&mut self, reservation: &Reservation) {
        for granted in &reservation.granted {
            if let Some(object) = self.observed.objects.ref_of(&granted.uid) {
                self.outbox.uses.changed(object);
            }
        }
    }
}
