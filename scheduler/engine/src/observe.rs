//! What each event means.

use std::sync::Arc;
use std::time::Duration;

use model::{Assignment, Corridor, CorridorPhase, Node, NodeName, ObjectKey, Pod, PodUid};

use crate::decision::Report;
use crate::engine::Engine;
use crate::event::{Event, Kind, Refusal};
use crate::ledger::Holding;
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
            }
            Event::PodSeen(pod) => self.pod_seen(pod),
            Event::PodGone(uid) => self.pod_gone(&uid),
            Event::CorridorSeen(corridor) => self.corridor_seen(corridor),
            Event::CorridorGone(key) => {
                self.corridors.remove(&key);
                self.queue_line_reports(&key);
            }
            Event::BackendSeen { age } => self.backend_seen(age),
            Event::BackendGone => {
                self.corridors.backend_gone();
                self.note_freshness();
            }
            Event::Synced(kind) => self.synced(kind, true),
            Event::Absent(kind) => self.synced(kind, false),
            Event::BindDone(uid) => self.bind_done(&uid),
            Event::BindRefused { pod, refusal } => self.bind_refused(&pod, &refusal),
            Event::ReportLost(uid) => self.report_lost(&uid),
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
            self.wake_parked(&name);
        }
    }

    fn synced(&mut self, kind: Kind, installed: bool) {
        self.unsynced.remove(&kind);
        if kind == Kind::Corridors {
            self.corridors.not_installed = !installed;
            self.release_all_lines();
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
                let granted = grant.and_then(|grant| grant.corridor);
                let holding = Holding { node, shape: pod.spec.shape.clone(), corridor: granted };
                self.pod_bound(pod, holding);
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
    /// What it holds of a Corridor is what was granted when it was bound: a later edit of its
    /// annotations neither lowers nor raises it.
    fn pod_bound(&mut self, pod: Pod, seen: Holding) {
        let uid = pod.uid.clone();
        self.stop_waiting(&uid);
        self.forget_in_line(&uid);
        let Some(record) = self.pods.get_mut(&uid) else { return };
        let before = record.holding.take();
        let mut holding = seen;
        if let Some(known) = before.as_ref().filter(|known| known.node == holding.node) {
            holding.corridor.clone_from(&known.corridor);
        }
        record.pod = Arc::new(pod);
        record.holding = Some(holding.clone());
        if before.as_ref() != Some(&holding) {
            if let Some(before) = &before {
                self.ledger.release(before);
            }
            self.ledger.take(&holding);
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
            if let Some(record) = self.pods.get_mut(&uid)
                && matches!(record.stage, Stage::Binding { .. })
            {
                record.pod = Arc::new(pod);
            }
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
                if before.spec != pod.spec {
                    self.forget_in_line(&uid);
                }
                if let Some(record) = self.pods.get_mut(&uid) {
                    record.pod = Arc::new(pod);
                }
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
        let need = record.pod.spec.corridor.clone();
        if !record.stage.is_waiting() {
            return;
        }
        self.move_to(uid, Stage::Held);
        if let Some(need) = need {
            self.corridors.with_line(&need.corridor, |line| line.forget(order));
            self.release_line(&need.corridor);
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
        if let Some(record) = self.pods.get(uid)
            && let Some(need) = &record.pod.spec.corridor
        {
            self.corridors.with_line(&need.corridor, |line| line.forget(record.order));
        }
    }

    pub(crate) fn give_back(&mut self, uid: &PodUid) {
        let Some(holding) = self.pods.get_mut(uid).and_then(|record| record.holding.take()) else {
            return;
        };
        self.ledger.release(&holding);
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
        self.give_back(uid);
    }

    fn report_lost(&mut self, uid: &PodUid) {
        if let Some(record) = self.pods.get_mut(uid) {
            record.report.written = None;
            self.reports.held(self.now, uid, &record.report);
        }
    }

    fn corridor_seen(&mut self, corridor: Corridor) {
        let (key, now) = (corridor.key.clone(), self.now);
        let cause_before = self.corridors.promise(&key, now).err();
        let before = self.corridors.insert(corridor);
        let Some(after) = self.corridors.get(&key).cloned() else { return };
        let spec_changed = before.as_ref().is_none_or(|before| {
            (before.generation, &before.uid) != (after.generation, &after.uid)
        });
        let entered_ready = after.phase == CorridorPhase::Ready
            && before.as_ref().is_none_or(|before| before.phase != CorridorPhase::Ready);
        self.wake_aside(&key, spec_changed, entered_ready);
        if spec_changed {
            self.reconsider_after_spec_change(&after);
        }
        self.release_line(&key);
        let phase_changed = before.is_none_or(|before| before.phase != after.phase);
        if phase_changed || cause_before != self.corridors.promise(&key, now).err() {
            self.queue_line_reports(&key);
        }
    }

    fn backend_seen(&mut self, age: Duration) {
        self.corridors.backend_seen(self.now, age);
        if self.corridors.is_fresh(self.now) && !self.backend_was_fresh {
            self.release_all_lines();
        }
        self.note_freshness();
    }

    /// Tells held Pods when corrd falls silent or speaks again.
    pub(crate) fn note_freshness(&mut self) {
        let fresh = self.corridors.is_fresh(self.now);
        if std::mem::replace(&mut self.backend_was_fresh, fresh) != fresh {
            for key in self.corridors.keys_with_lines() {
                self.queue_line_reports(&key);
            }
        }
    }

    fn queue_line_reports(&mut self, key: &ObjectKey) {
        let Some(line) = self.corridors.line(key) else { return };
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
            record.rejection = Some(Rejection::Corridor(verdict));
        }
    }

    pub(crate) fn node(&self, name: &NodeName) -> Option<&Node> {
        self.nodes.get(name)
    }
}
