//! Translates the inputs of the loop into the engine's events.

use engine::{Bind, BindRefusal, BindRefusalCause, Event, Prepare, Watched, WatchedKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::PodUid;
use tracing::{info, warn};

use crate::act::{BindReport, EvictReport, PrepareReport, WrittenObject};

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
            Input::PrepareEnded(report) => self.take_prepare(*report),
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
            Input::ResyncedClaims { term, claims } => {
                self.take_resynced_claims(term.as_ref(), claims);
            }
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
            Outcome::Gone | Outcome::Refused { .. } | Outcome::StaleLeader { .. } => {
                metrics.not_bound(profile, took);
            }
        }
        if let Some(pod) = read {
            self.take_reply(&pod);
        }
        let Bind { pod, uid, node, .. } = bind;
        self.handle(match self.refusal_of(outcome, "the Pod is gone") {
            None => Event::BindDone(uid),
            Some(refusal) => {
                info!(%pod, %node, why = %refusal.message, "the Binding did not take effect");
                Event::BindRefused { pod: uid, refusal }
            }
        });
    }

    /// The objects as the writes left them come first: what becomes of them is judged by that.
    fn take_prepare(&mut self, report: PrepareReport) {
        let PrepareReport { prepare: Prepare { pod, uid, node, .. }, outcome, written } = report;
        self.slots.end_bind(&uid);
        for object in written {
            match object {
                WrittenObject::Volume(volume) => self.take_written(*volume),
                WrittenObject::Claim(claim) => self.take_written(*claim),
                WrittenObject::ResourceClaim(claim) => self.take_written(*claim),
            }
        }
        self.handle(match self.refusal_of(outcome, "a volume or claim is gone") {
            None => Event::PrepareDone(uid),
            Some(refusal) => {
                info!(%pod, %node, why = %refusal.message, "the claims of a Pod were not prepared");
                Event::PrepareRefused { pod: uid, refusal }
            }
        });
    }

    /// An object from the reply to a write of ours.
    fn take_written<K: WatchedResource>(&mut self, wire: K) {
        if self.trackers.of(K::KIND).replied(wire.meta()) {
            let seen = wire.seen(&mut self.watched);
            self.handle_evaluations();
            self.handle_some(seen);
        }
    }

    /// What expressions say of devices comes before the object that needs it.
    pub(crate) fn handle_evaluations(&mut self) {
        for event in self.watched.selectors.take_pending() {
            self.handle(event);
        }
    }

    /// Why a call of the binding cycle did not take effect; nothing if it did.
    fn refusal_of(&self, outcome: Outcome, gone: &str) -> Option<BindRefusal> {
        let (cause, message) = match outcome {
            Outcome::Done => return None,
            // The watch shows that it is gone.
            Outcome::Gone => (BindRefusalCause::Obsolete, gone.to_owned()),
            Outcome::Refused(Refused { message, is_conflict: true }) => {
                (BindRefusalCause::Conflict, message)
            }
            Outcome::Refused(Refused { message, is_conflict: false }) => {
                (BindRefusalCause::ApiServer, message)
            }
            // Not the Pod's fault: the election checks whether another replica leads now.
            Outcome::StaleLeader { message } => {
                self.tenure.doubt();
                (BindRefusalCause::Obsolete, message)
            }
            Outcome::TermEnded => {
                let message = "this replica does not lead any more".to_owned();
                (BindRefusalCause::Obsolete, message)
            }
        };
        Some(BindRefusal { cause, message })
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
                    self.handle_evaluations();
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
        self.handle_evaluations();
    }

    /// What was not in the list is gone.
    fn end_list<K: WatchedResource>(&mut self) {
        for gone in self.trackers.of(K::KIND).end_list() {
            let gone = K::gone(gone, &mut self.watched);
            self.handle_some(gone);
        }
        self.handle_evaluations();
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

    pub(crate) fn handle_some(&mut self, event: Option<Event>) {
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
