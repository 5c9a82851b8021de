//! What each event means.

mod cluster;
mod objects;
mod pods;
mod watched;

pub use watched::{Watched, WatchedId, WatchedKind};

use model::PodUid;

use crate::decision::Report;
use crate::engine::Engine;
use crate::event::Event;
use crate::record::{BindingStep, Stage};
use crate::rejection::Rejection;

impl Engine {
    pub(crate) fn observe(&mut self, event: Event) {
        match event {
            Event::Seen(watched) => self.seen(watched),
            Event::Gone(id) => self.gone(id),
            Event::PodUnreadable { pod, node } => self.pod_unreadable(pod, &node),
            Event::KubeletRejected { pod, why } => self.kubelet_rejected(&pod, why),
            Event::EvictionStepDone { victim, step } => self.eviction_step_done(&victim, step),
            Event::EvictionPutOff { victim } => self.outbox.evictions.put_off(self.now, &victim),
            Event::EvictionDelayed { victim } => self.eviction_delayed(&victim),
            Event::EvictionFailed { victim } => self.eviction_failed(&victim),
            Event::Synced(kind) => self.synced(kind, true),
            Event::Absent(kind) => self.synced(kind, false),
            Event::Reconfigured(config) => self.reconfigured(*config),
            Event::SelectorsEvaluated(evaluations) => self.selectors_evaluated(evaluations),
            Event::SelectorGone(expression) => {
                self.observed.cluster.devices.verdicts.forget_expression(&expression);
            }
            Event::DeviceTypeGone(device_type) => {
                self.observed.cluster.devices.verdicts.forget_type(&device_type);
            }
            Event::TermBegan => self.term_began(),
            Event::BindDone(uid) => self.bind_done(&uid),
            Event::BindRefused { pod, refusal } => self.give_up_binding(&pod, None, refusal),
            Event::PrepareDone(uid) => self.prepare_done(&uid),
            Event::PrepareRefused { pod, refusal } => self.prepare_refused(&pod, refusal),
            Event::ReportWritten(uid) => self.report_ended(&uid, true),
            Event::ReportLost(uid) => self.report_ended(&uid, false),
            Event::ReportPutOff(report) => self.put_off(*report),
            Event::UseLost(object) => self.outbox.uses.lost(&object),
            Event::BindUnclear(uid) => {
                if self.stage_of(&uid).is_some_and(|stage| matches!(stage, Stage::Binding(_))) {
                    self.move_to(&uid, Stage::Binding(BindingStep::UNCLEAR));
                }
            }
        }
    }

    fn synced(&mut self, kind: WatchedKind, installed: bool) {
        self.observed.unsynced.remove(&kind);
        if let WatchedKind::Objects(kind) = kind {
            self.observed.objects.set_installed(kind, installed);
            self.recheck_nominations_needing(|needed| needed.kind == kind);
            self.release_queues_of(kind);
        }
    }

    fn bind_done(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        let Some(node) = record.reservation.as_ref().map(|reservation| reservation.node.clone())
        else {
            return;
        };
        record.failures = 0;
        let pod = record.pod.clone();
        self.move_to(uid, Stage::Bound);
        self.set_nomination(uid, None);
        self.forget_in_queue(uid);
        let report = Report::Scheduled { pod: pod.key.clone(), uid: uid.clone(), node };
        self.outbox.reports.scheduled(report, self.config.events);
    }

    fn put_off(&mut self, report: Report) {
        match report {
            Report::Unschedulable(unschedulable) => {
                if let Some(record) = self.observed.pods.get_mut(&unschedulable.uid) {
                    self.outbox.reports.put_off_unschedulable(
                        self.now,
                        &unschedulable.uid,
                        &mut record.report,
                    );
                }
                if self.stage_of(&unschedulable.uid) == Some(&Stage::Reporting) {
                    self.move_to(&unschedulable.uid, Stage::Active);
                }
            }
            Report::Used(used) => self.outbox.uses.lost(&used.object),
            Report::Scheduled { .. } => {
                self.outbox.reports.put_off_scheduled(self.now, report, self.config.events);
            }
        }
    }

    fn report_ended(&mut self, uid: &PodUid, written: bool) {
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        record.report.in_flight = false;
        if !written {
            record.report.written = None;
        }
        if !written || std::mem::take(&mut record.report.again) {
            self.outbox.reports.unschedulable(self.now, uid, &record.report);
        }
        if record.stage == Stage::Reporting {
            self.move_to(uid, Stage::Active);
        }
    }

    pub(crate) fn stage_of(&self, uid: &PodUid) -> Option<&Stage> {
        self.observed.pods.get(uid).map(|record| &record.stage)
    }

    /// Rejects a Pod in the queue anew, so that the figures of its report are live.
    pub(crate) fn refresh_rejection(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get(uid) else { return };
        if !matches!(record.stage, Stage::InQueue(_)) {
            return;
        }
        let rejection = self.pre_filter(record.order, &record.pod.spec).err();
        if let (Some(rejection), Some(record)) = (rejection, self.observed.pods.get_mut(uid)) {
            record.rejection = Some(Box::new(Rejection::Object(rejection)));
            record.attempts.rejected(self.now, record.rejection.as_deref());
        }
    }
}
