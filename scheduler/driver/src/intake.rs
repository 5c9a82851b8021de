//! Translates the inputs of the loop into the engine's events.

use engine::{Bind, BindRefusal, BindRefusalCause, Event, Watched, WatchedKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::PodUid;
use tracing::{info, warn};

use crate::act::{BindReport, EvictReport};

use crate::health::KindState;
use crate::kinds::WatchedResource;
use crate::metrics::Took;
use crate::run::{Driver, Input};
use crate::settling::{Outcome, Refused};
use crate::translate;
use crate::watch::{Unreadable, WatchEvent};
use crate::wire::WirePod;

impl Driver {
    pub(crate) fn take(&mut self, input: Input) {
        self.watched.now = self.clock.now();
        match input {
            Input::Watch(event) => event.hand_to(self),
            Input::BindUnclear(uid) => {
                self.slots.unclear_bind(&uid);
                self.handle(Event::BindUnclear(uid));
            }
            Input::BindEnded { report, took } => self.take_bind(*report, took),
            Input::ConditionWritten { uid, pod } => self.take_condition(uid, pod),
            Input::UseEnded { object, uid, version } => {
                let is_overwritten = self.watched.guard.uses.wrote(&object, &uid, version);
                if version.is_none() || is_overwritten {
                    self.handle(Event::UseLost(object));
                }
                self.note_tampering();
            }
            Input::EvictionEnded(report) => self.take_eviction(report),
            Input::WriteEnded(id) => self.slots.end_write(id),
            Input::Resynced { term, pods } => self.take_resynced(term.as_ref(), &pods),
            Input::ResyncEnded { term, pods } => self.end_resync(term.as_ref(), pods),
        }
    }

    fn take_bind(&mut self, report: BindReport, took: Took) {
        let BindReport { bind, outcome, read } = report;
        self.slots.end_bind(&bind.uid);
        let (metrics, profile) = (&self.metrics.attempts, &bind.spec.profile);
        match outcome {
            Outcome::Done => {
                metrics.bound(profile, took, self.watched.now, self.engine.attempts(&bind.uid));
            }
            // Another replica determines the outcome.
            Outcome::TermEnded => {}
            Outcome::Gone | Outcome::Refused { .. } | Outcome::Fenced { .. } => {
                metrics.not_bound(profile, took);
            }
        }
        if let Some(pod) = read {
            self.take_reply(&pod);
        }
        match outcome {
            Outcome::Done => self.handle(Event::BindDone(bind.uid)),
            // The watch shows that it is gone.
            Outcome::Gone => {
                self.refused(bind, BindRefusalCause::Obsolete, "the Pod is gone".to_owned());
            }
            Outcome::Refused(Refused { message, is_conflict }) => {
                let cause = if is_conflict {
                    BindRefusalCause::Conflict
                } else {
                    BindRefusalCause::ApiServer
                };
                self.refused(bind, cause, message);
            }
            // Not the Pod's fault: the election checks whether another replica leads now.
            Outcome::Fenced { message } => {
                self.tenure.doubt();
                self.refused(bind, BindRefusalCause::Obsolete, message);
            }
            Outcome::TermEnded => {
                let message = "this replica does not lead any more".to_owned();
                self.refused(bind, BindRefusalCause::Obsolete, message);
            }
        }
    }

    fn refused(&mut self, bind: Bind, cause: BindRefusalCause, message: String) {
        info!(pod = %bind.pod, node = %bind.node, why = %message, "Binding refused; trying again");
        let refusal = BindRefusal { cause, message };
        self.handle(Event::BindRefused { pod: bind.uid, refusal });
    }

    /// The Pod as the write left it comes first, so that it is bound on that version.
    fn take_condition(&mut self, uid: PodUid, pod: Option<Box<WirePod>>) {
        let written = pod.and_then(|pod| self.take_reply(&pod));
        self.handle(match written {
            Some(_) => Event::ReportWritten(uid),
            None => Event::ReportLost(uid),
        });
    }

    fn take_eviction(&mut self, report: EvictReport) {
        self.handle(match report {
            EvictReport::Done { victim, step } => Event::EvictionStepDone { victim, step },
            EvictReport::Delayed { victim } => Event::EvictionDelayed { victim },
            EvictReport::Failed { victim } => Event::EvictionFailed { victim },
        });
    }

    /// A Pod from the reply to a call of ours.
    fn take_reply(&mut self, wire: &WirePod) -> Option<model::Pod> {
        let is_new = self.trackers.of(WatchedKind::Pods).replied(&wire.metadata);
        let mut pod = self.watched.pod(wire)?;
        self.trackers.of(WatchedKind::Pods).lend_names(&mut pod);
        if is_new {
            self.handle(Event::seen(pod.clone()));
        }
        Some(pod)
    }

    /// To be called before the Pod is shown as ended: after that, the engine has forgotten its Node.
    pub(crate) fn note_kubelet_rejection(&mut self, wire: &WirePod) {
        let Some(rejection) = translate::kubelet_rejection(&wire.status) else { return };
        let uid = PodUid::new(wire.metadata.uid.as_deref().unwrap_or_default());
        if !self.engine.has_placed(&uid) {
            return;
        }
        let reason = rejection.reason;
        warn!(
            namespace = wire.metadata.namespace,
            name = wire.metadata.name,
            node = wire.spec.node_name,
            reason,
            why = wire.status.message,
            "the kubelet has rejected a Pod that was bound to its node"
        );
        self.metrics.kubelet_rejections.with_label_values(&[reason]).inc();
        if rejection.is_of_the_node {
            self.handle(Event::KubeletRejected { pod: uid, why: reason.into() });
        }
    }

    pub(crate) fn take_event_of<K: WatchedResource>(&mut self, event: WatchEvent<K>) {
        match event {
            WatchEvent::ListBegins => self.trackers.of(K::KIND).begin_list(),
            WatchEvent::Seen(wire) => {
                self.metrics.watch_events.with_label_values(&[K::NAME]).inc();
                let (is_new, replaced) = self.trackers.of(K::KIND).seen(wire.meta());
                let replaced = replaced.and_then(|gone| K::replaced(gone, &mut self.watched));
                self.handle_some(replaced);
                if is_new {
                    let mut seen = wire.seen(&mut self.watched);
                    if let Some(Event::Seen(Watched::Pod(pod))) = &mut seen {
                        self.trackers.of(K::KIND).lend_names(pod);
                    }
                    self.handle_some(seen);
                    self.note_tampering();
                }
            }
            WatchEvent::Gone(wire) => self.take_gone::<K>(wire.meta()),
            WatchEvent::Unreadable(left) => self.take_unreadable::<K>(&left),
            WatchEvent::UnreadableGone(left) => self.take_gone::<K>(&left.metadata),
            WatchEvent::ListEnds => {
                self.end_list::<K>();
                self.synced(K::KIND);
            }
            WatchEvent::Absent if K::MAY_BE_ABSENT => {
                // What was known of it went with its CRD.
                self.trackers.of(K::KIND).begin_list();
                self.end_list::<K>();
                self.absent(K::KIND);
            }
            WatchEvent::Absent | WatchEvent::Failed => {
                self.metrics.watch_errors.with_label_values(&[K::NAME]).inc();
            }
        }
    }

    fn take_gone<K: WatchedResource>(&mut self, metadata: &ObjectMeta) {
        let gone = self.trackers.of(K::KIND).gone(metadata);
        let gone = gone.and_then(|gone| K::gone(gone, &mut self.watched));
        self.handle_some(gone);
    }

    /// What was not in the list is gone.
    fn end_list<K: WatchedResource>(&mut self) {
        for gone in self.trackers.of(K::KIND).end_list() {
            let gone = K::gone(gone, &mut self.watched);
            self.handle_some(gone);
        }
    }

    fn take_unreadable<K: WatchedResource>(&mut self, left: &Unreadable) {
        let resource = K::NAME;
        self.metrics.unreadable.with_label_values(&[resource]).inc();
        let was_known = self.trackers.of(K::KIND).unreadable(&left.metadata);
        // Each object once: a relist shows it again.
        if self.watched.is_first_warning(left.metadata.uid.as_deref()) {
            warn!(
                resource,
                namespace = left.metadata.namespace,
                name = left.metadata.name,
                why = left.why,
                keeps_last_good_version = was_known,
                "an object cannot be read"
            );
        }
        self.handle_some(K::unreadable(left));
    }

    fn note_tampering(&mut self) {
        let metrics = &self.metrics;
        self.watched.guard.collect(self.duty.decides(), |kind| metrics.tampered(kind));
        for object in std::mem::take(&mut self.watched.overwritten) {
            self.handle(Event::UseLost(object));
        }
    }

    fn handle_some(&mut self, event: Option<Event>) {
        if let Some(event) = event {
            self.handle(event);
        }
    }

    fn absent(&mut self, kind: WatchedKind) {
        self.health.set(kind, KindState::Absent);
        self.handle(Event::Absent(kind));
    }

    fn synced(&mut self, kind: WatchedKind) {
        self.health.set(kind, KindState::Synced);
        self.handle(Event::Synced(kind));
    }
}
