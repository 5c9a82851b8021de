//! What each event means.

use std::sync::Arc;
use std::time::Duration;

use model::{Assignment, Grant, Node, ObjectKind, ObjectRef, Phase, Pod, PodUid, Reservable};

use crate::decision::Report;
use crate::engine::Engine;
use crate::event::{Event, Kind, Refusal};
use crate::ledger::{Holder, Holding};
use crate::line::WakeAside;
use crate::queue::{Order, backoff_after};
use crate::record::{Record, Stage};
use crate::rejection::Rejection;
use crate::reports::ReportState;

impl Engine {
    pub(crate) fn observe(&mut self, event: Event) {
        match event {
            Event::NodeSeen(node) => self.node_seen(node),
            Event::NodeGone(name) => {
                self.nodes.remove(&name);
                self.room_changes += 1;
            }
            Event::PodSeen(pod) => self.pod_seen(pod),
            Event::PodGone(uid) => self.pod_gone(&uid),
            Event::ObjectSeen(object) => self.object_seen(object),
            Event::ObjectGone(object) => {
                self.objects.remove(&object);
                self.queue_line_reports(&object);
            }
            Event::PolicySeen { policy, allowed_tenants } => {
                self.objects.policy_seen(policy.clone(), allowed_tenants);
                self.policy_changed(&policy.namespace);
            }
            Event::PolicyGone(policy) => {
                self.objects.policy_gone(&policy);
                self.policy_changed(&policy.namespace);
            }
            Event::BackendSeen { kind, age } => self.backend_seen(kind, age),
            Event::BackendGone(kind) => {
                self.objects.backend_gone(kind);
                self.note_freshness();
            }
            Event::Synced(kind) => self.synced(kind, true),
            Event::Absent(kind) => self.synced(kind, false),
            Event::BindDone(uid) => self.bind_done(&uid),
            Event::BindRefused { pod, refusal } => self.bind_refused(&pod, &refusal),
            Event::ReportWritten(uid) => self.report_ended(&uid, true),
            Event::ReportLost(uid) => self.report_ended(&uid, false),
            Event::BindUnknown(uid) => {
                if self.stage_of(&uid).is_some_and(|stage| matches!(stage, Stage::Binding { .. })) {
                    self.move_to(&uid, Stage::Binding { outcome_unclear: true });
                }
            }
        }
    }

    fn node_seen(&mut self, node: Node) {
        let name = node.name.clone();
        let before = self.nodes.insert(name.clone(), node);
        if before.as_ref() != self.nodes.get(&name) {
            self.room_changes += 1;
            self.wake_parked(&name);
        }
    }

    fn synced(&mut self, kind: Kind, installed: bool) {
        self.unsynced.remove(&kind);
        if let Kind::Objects(kind) = kind {
            self.objects.set_installed(kind, installed);
            self.release_lines_of(kind);
        }
    }

    fn pod_seen(&mut self, pod: Pod) {
        if let Some(earlier) = self.uids.get(&pod.key).filter(|uid| **uid != pod.uid).cloned() {
            self.pod_gone(&earlier);
        }
        let uid = pod.uid.clone();
        self.uids.insert(pod.key.clone(), uid.clone());
        let is_new = !self.pods.contains_key(&uid);
        if is_new {
            self.insert_record(&pod);
        }
        match pod.assignment.clone() {
            Assignment::Bound { node, grant } => {
                let granted = grant.iter().flat_map(Grant::parts).cloned().collect();
                let holder = Holder { uid: uid.clone(), key: pod.key.clone() };
                let shape = pod.spec.shape.clone();
                self.pod_bound(pod, Holding { holder, node, shape, granted });
            }
            Assignment::Finished => self.pod_rests(pod, Stage::Finished),
            Assignment::NotNow => self.pod_rests(pod, Stage::Resting),
            Assignment::Waiting => self.pod_waits(pod, is_new),
        }
    }

    fn insert_record(&mut self, pod: &Pod) {
        let order = Order::new(pod.spec.priority, pod.created_at_unix_s, self.pods_seen);
        self.pods_seen += 1;
        let record = Record {
            pod: Arc::new(pod.clone()),
            order,
            stage: Stage::Resting,
            holding: None,
            failures: 0,
            not_before: self.now,
            first_seen: self.now,
            woken_for: None,
            rejection: None,
            report: ReportState::default(),
        };
        *self.stats.of_stage(&record.stage) += 1;
        self.pods.insert(pod.uid.clone(), record);
    }

    /// A Pod on a Node counts there, whoever put it there.
    ///
    /// What it holds of an object is what was granted when it was bound: a later edit of its
    /// annotations neither lowers nor raises it.
    fn pod_bound(&mut self, pod: Pod, seen: Holding) {
        let uid = pod.uid.clone();
        self.stop_waiting(&uid);
        self.forget_in_line(&uid);
        let Some(record) = self.pods.get_mut(&uid) else { return };
        let before = record.holding.take();
        let mut holding = seen;
        if let Some(known) =
            before.as_ref().filter(|_| record.stage == Stage::Bound(holding.node.clone()))
        {
            holding.granted.clone_from(&known.granted);
        }
        record.pod = Arc::new(pod);
        record.holding = Some(holding.clone());
        if before.as_ref() != Some(&holding) {
            if let Some(before) = &before {
                self.ledger.release(before);
            }
            self.ledger.take(&holding);
            self.ledger.commit();
            self.room_changes += 1;
        }
        self.move_to(&uid, Stage::Bound(holding.node.clone()));
        if let Some(before) = before.filter(|before| *before != holding) {
            self.wake_after_release(&before);
        }
    }

    /// Finished Pods give back what they held; gated and leaving ones are not placed.
    fn pod_rests(&mut self, pod: Pod, to: Stage) {
        let uid = pod.uid.clone();
        let settled = matches!(
            self.stage_of(&uid),
            Some(Stage::Bound(_) | Stage::Binding { .. } | Stage::Finished)
        );
        if settled && to == Stage::Resting {
            // An older sight of a Pod that we know to be bound, or that may be any moment. If
            // its Binding is refused, it rests.
            self.update_while_binding(pod);
            return;
        }
        self.leave_for_good(&uid, to);
        if let Some(record) = self.pods.get_mut(&uid) {
            record.pod = Arc::new(pod);
        }
    }

    fn pod_waits(&mut self, pod: Pod, is_new: bool) {
        let uid = pod.uid.clone();
        let Some(record) = self.pods.get_mut(&uid) else { return };
        let before = record.pod.clone();
        match record.stage {
            // Neither an assignment nor an end is ever taken back: this sight is older than
            // our knowledge.
            Stage::Bound(_) | Stage::Finished => return,
            Stage::Binding { .. } => {
                self.update_while_binding(pod);
                return;
            }
            Stage::Resting => {}
            _ if before.spec == pod.spec => {
                record.pod = Arc::new(pod);
                return;
            }
            _ => {}
        }
        if !is_new {
            self.stop_waiting(&uid);
            self.move_to(&uid, Stage::Resting);
        }
        let Some(record) = self.pods.get_mut(&uid) else { return };
        record.order = record.order.with_priority(pod.spec.priority);
        record.failures = 0;
        record.not_before = self.now;
        record.rejection = None;
        record.pod = Arc::new(pod);
        self.move_to(&uid, Stage::Active);
    }

    /// Should the Binding be refused, the Pod goes on as it is now.
    fn update_while_binding(&mut self, pod: Pod) {
        let uid = pod.uid.clone();
        let Some(record) = self.pods.get(&uid) else { return };
        if !matches!(record.stage, Stage::Binding { .. }) {
            return;
        }
        if record.pod.spec != pod.spec {
            self.forget_in_line(&uid);
        }
        if let Some(record) = self.pods.get_mut(&uid) {
            record.pod = Arc::new(pod);
        }
    }

    fn pod_gone(&mut self, uid: &PodUid) {
        self.leave_for_good(uid, Stage::Finished);
        let Some(record) = self.pods.remove(uid) else { return };
        *self.stats.of_stage(&record.stage) -= 1;
        if self.uids.get(&record.pod.key) == Some(uid) {
            self.uids.remove(&record.pod.key);
        }
        self.reports.forget(uid);
    }

    /// Takes the Pod out of whatever line it stands in or was released from.
    fn stop_waiting(&mut self, uid: &PodUid) {
        let Some(record) = self.pods.get_mut(uid) else { return };
        let (order, woken_for) = (record.order, record.woken_for.take());
        let spec = record.pod.spec.clone();
        if !record.stage.is_waiting() {
            return;
        }
        self.move_to(uid, Stage::Held);
        for need in &spec.needs {
            self.objects.with_line(&need.object, |line| line.forget(order));
            self.release_line(&need.object);
        }
        if let Some(node) = woken_for {
            self.wake_parked(&node);
        }
    }

    /// The Pod waits for nothing and holds nothing any more.
    fn leave_for_good(&mut self, uid: &PodUid, to: Stage) {
        self.stop_waiting(uid);
        self.move_to(uid, to);
        self.give_back(uid);
        self.forget_in_line(uid);
    }

    fn forget_in_line(&mut self, uid: &PodUid) {
        let Some(record) = self.pods.get(uid) else { return };
        for need in &record.pod.spec.needs {
            self.objects.with_line(&need.object, |line| line.forget(record.order));
        }
    }

    pub(crate) fn give_back(&mut self, uid: &PodUid) {
        let Some(holding) = self.pods.get_mut(uid).and_then(|record| record.holding.take()) else {
            return;
        };
        self.ledger.release(&holding);
        self.room_changes += 1;
        self.wake_after_release(&holding);
    }

    fn bind_done(&mut self, uid: &PodUid) {
        let Some(record) = self.pods.get_mut(uid) else { return };
        let Some(node) = record.holding.as_ref().map(|holding| holding.node.clone()) else {
            return;
        };
        record.failures = 0;
        let pod = record.pod.clone();
        self.move_to(uid, Stage::Bound(node.clone()));
        self.forget_in_line(uid);
        self.reports.scheduled(Report::Scheduled { pod: pod.key.clone(), uid: uid.clone(), node });
    }

    fn bind_refused(&mut self, uid: &PodUid, _refusal: &Refusal) {
        let Some(record) = self.pods.get_mut(uid) else { return };
        if !matches!(record.stage, Stage::Binding { .. }) {
            return;
        }
        self.stats.attempts_error += 1;
        record.failures = record.failures.saturating_add(1);
        record.not_before = self.now + backoff_after(record.failures);
        let place_again = record.pod.assignment == Assignment::Waiting;
        record.order = record.order.with_priority(record.pod.spec.priority);
        self.move_to(uid, if place_again { Stage::Backoff } else { Stage::Resting });
        if !place_again {
            self.forget_in_line(uid);
        }
        self.give_back(uid);
    }

    fn report_ended(&mut self, uid: &PodUid, written: bool) {
        let Some(record) = self.pods.get_mut(uid) else { return };
        record.report.in_flight = false;
        if !written {
            record.report.written = None;
        }
        if !written || std::mem::take(&mut record.report.again) {
            self.reports.held(self.now, uid, &record.report);
        }
        if record.stage == Stage::Reporting {
            self.move_to(uid, Stage::Active);
        }
    }

    fn object_seen(&mut self, object: Reservable) {
        let (name, now) = (object.object.clone(), self.now);
        self.objects.set_installed(name.kind, true);
        let cause_before = self.objects.promise(&name, now).err();
        let before = self.objects.insert(object);
        let Some(after) = self.objects.get(&name).cloned() else { return };
        let spec_changed = before.as_ref().is_none_or(|before| {
            (before.generation, &before.uid) != (after.generation, &after.uid)
        });
        let entered_ready = after.phase == Phase::Ready
            && before.as_ref().is_none_or(|before| before.phase != Phase::Ready);
        self.wake_aside(&name, |wake| match wake {
            WakeAside::SpecChange => spec_changed,
            WakeAside::SpecChangeOrReady => spec_changed || entered_ready,
            WakeAside::PolicyChange => false,
        });
        if spec_changed {
            self.reconsider_after_spec_change(&after);
        }
        self.release_line(&name);
        let phase_changed = before.is_none_or(|before| before.phase != after.phase);
        if phase_changed || cause_before != self.objects.promise(&name, now).err() {
            self.queue_line_reports(&name);
        }
    }

    /// Whom the owner lets in has changed. Those already in line are asked again when their turn
    /// comes; those who were refused are asked now.
    fn policy_changed(&mut self, owner: &str) {
        let of_owner = |object: &ObjectRef| *object.key.namespace == *owner;
        for object in self.objects.with_lines().into_iter().filter(of_owner) {
            self.wake_aside(&object, |wake| wake == WakeAside::PolicyChange);
            self.queue_line_reports(&object);
        }
    }

    fn backend_seen(&mut self, kind: ObjectKind, age: Duration) {
        self.objects.backend_seen(kind, self.now, age);
        if self.objects.is_fresh(kind, self.now) && !self.fresh.contains(&kind) {
            self.release_lines_of(kind);
        }
        self.note_freshness();
    }

    /// Tells held Pods when a daemon falls silent or speaks again.
    pub(crate) fn note_freshness(&mut self) {
        let fresh = self.objects.fresh_kinds(self.now);
        let before = std::mem::replace(&mut self.fresh, fresh);
        if before == self.fresh {
            return;
        }
        for object in self.objects.with_lines() {
            if before.contains(&object.kind) != self.fresh.contains(&object.kind) {
                self.queue_line_reports(&object);
            }
        }
    }

    fn queue_line_reports(&mut self, object: &ObjectRef) {
        let Some(line) = self.objects.line(object) else { return };
        for (_, uid) in line.waiting() {
            if let Some(record) = self.pods.get(uid) {
                self.reports.held(self.now, uid, &record.report);
            }
        }
    }

    pub(crate) fn stage_of(&self, uid: &PodUid) -> Option<&Stage> {
        self.pods.get(uid).map(|record| &record.stage)
    }

    /// The verdict on a Pod in line as it would be now: the figures of its report are live.
    pub(crate) fn refresh_rejection(&mut self, uid: &PodUid) {
        let Some(record) = self.pods.get(uid) else { return };
        if !matches!(record.stage, Stage::InLine(_)) {
            return;
        }
        let verdict = self.gate(record.order, &record.pod.spec).err();
        if let (Some(verdict), Some(record)) = (verdict, self.pods.get_mut(uid)) {
            record.rejection = Some(Rejection::Object(verdict));
        }
    }
}
