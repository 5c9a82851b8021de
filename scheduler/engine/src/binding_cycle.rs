//! The binding cycle of a placed Pod, in kube-scheduler's steps: PreBind, then Bind.
//!
//! ```text
//!   place ──▶ Writing ──▶ Awaiting ──▶ Ready ──▶ Sent ──▶ Bound
//!                │            │          │         │
//!                └────────────┴──────────┴─────────┴──▶ given up: everything is free again
//! ```
//!
//! A Pod whose claims are bound is sent at once. What the Pod needs (Node, bandwidth, volumes, devices) is reserved as one from
//! its placement on, and given back as one. A Pod that waits for others holds no bind slot.

use model::{Assignment, Grant, PodUid};
use rules::{ClusterObjectChange, Plugin};

use crate::decision::{Action, Bind, Prepare};
use crate::engine::Engine;
use crate::event::{BindRefusal, BindRefusalCause};
use crate::queue::backoff_after;
use crate::record::{BindingStep, Stage};
use crate::rejection::{BindingRejection, Rejection};
use crate::volumes::AwaitedClaim;

/// How far the claims of a placed Pod are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClaimProgress {
    /// Every claim is bound or has its devices, and they can be used on the Node.
    Ready,
    Waiting,
    /// Why they will never be, in kube-scheduler's words.
    Failed(String),
}

impl ClaimProgress {
    /// How far both are: the first failure counts.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed(why), _) | (_, Self::Failed(why)) => Self::Failed(why),
            (Self::Ready, Self::Ready) => Self::Ready,
            _ => Self::Waiting,
        }
    }
}

impl Engine {
    /// Begins the binding cycle of a Pod that has just been placed. Returns what is to be done now.
    pub(crate) fn begin_binding_cycle(&mut self, bind: Bind) -> Option<Action> {
        let uid = bind.uid.clone();
        let record = self.observed.pods.get(&uid)?;
        if record.volumes().is_none() && record.resource_claims().is_empty() {
            self.move_to(&uid, Stage::Binding(BindingStep::SENT));
            return Some(Action::Bind(bind));
        }
        let of_volumes = record.volumes().map(|volumes| self.volume_writes(volumes, &bind.node));
        let mut writes = of_volumes.unwrap_or_default();
        writes.extend(self.claim_writes(&uid, record.resource_claims()));
        if writes.is_empty() {
            self.await_claims(&uid);
            return None;
        }
        self.claims_sent(&uid, &writes);
        self.move_to(&uid, Stage::Binding(BindingStep::Writing));
        let Bind { pod, node, .. } = bind;
        Some(Action::Prepare(Prepare { pod, uid, node, writes }))
    }

    /// Everything was written: what others do about it is awaited.
    pub(crate) fn prepare_done(&mut self, uid: &PodUid) {
        self.claims_answered(uid);
        match self.stage_of(uid) {
            Some(Stage::Binding(BindingStep::Writing)) if !self.is_placed(uid) => {
                // A claim has given its devices back: the Pod is tried again.
                self.move_to(uid, Stage::Active);
            }
            Some(Stage::Binding(BindingStep::Writing)) => self.await_claims(uid),
            Some(Stage::Binding(BindingStep::Abandoned)) => self.abandon(uid),
            _ => {}
        }
    }

    pub(crate) fn prepare_refused(&mut self, uid: &PodUid, refusal: BindRefusal) {
        self.claims_answered(uid);
        if let Some(Stage::Binding(BindingStep::Writing | BindingStep::Abandoned)) =
            self.stage_of(uid)
        {
            let record = self.observed.pods.get(uid);
            let has_volumes = record.is_some_and(|record| record.volumes().is_some());
            let plugin = if has_volumes { Plugin::VolumeBinding } else { Plugin::DynamicResources };
            self.give_up_binding(uid, Some(plugin), refusal);
        }
    }

    pub(crate) fn is_placed(&self, uid: &PodUid) -> bool {
        self.observed.pods.get(uid).is_some_and(|record| record.reservation.is_some())
    }

    fn await_claims(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get(uid) else { return };
        let timeout = self.rules_of(&record.pod.spec.profile).volume_bind_timeout;
        let until = self.now + timeout;
        self.move_to(uid, Stage::Binding(BindingStep::Awaiting { until }));
        self.check_claims(uid);
    }

    /// Looks at what has become of the claims of a Pod that waits for them.
    fn check_claims(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get(uid) else { return };
        if !matches!(record.stage, Stage::Binding(BindingStep::Awaiting { .. })) {
            return;
        }
        let Some(reservation) = &record.reservation else { return };
        let of_volumes = reservation.volumes.as_ref().map_or(ClaimProgress::Ready, |volumes| {
            self.volume_progress(volumes, &reservation.node)
        });
        let of_devices = self.device_progress(uid, reservation);
        let failed = match (of_volumes, of_devices) {
            (ClaimProgress::Failed(why), _) => Some((Plugin::VolumeBinding, why)),
            (_, ClaimProgress::Failed(why)) => Some((Plugin::DynamicResources, why)),
            (ClaimProgress::Ready, ClaimProgress::Ready) => {
                return self.move_to(uid, Stage::Binding(BindingStep::Ready));
            }
            _ => None,
        };
        if let Some((plugin, why)) = failed {
            self.pre_bind_failed(uid, plugin, &why);
        }
    }

    /// kube-scheduler's words.
    fn pre_bind_failed(&mut self, uid: &PodUid, plugin: Plugin, why: &str) {
        let message = match plugin {
            Plugin::VolumeBinding => format!("binding volumes: {why}"),
            _ => why.to_owned(),
        };
        let refusal = BindRefusal { cause: BindRefusalCause::ApiServer, message };
        self.give_up_binding(uid, Some(plugin), refusal);
    }

    /// A claim or a volume has changed: the Pods that wait for it are looked at.
    pub(crate) fn check_awaiting(&mut self, change: &ClusterObjectChange) {
        for claim in awaited_claims(change) {
            for pod in self.queues.awaited.of(&claim) {
                self.check_claims(&pod);
            }
        }
    }

    /// Claims that were not bound in time.
    pub(crate) fn end_overdue_claims(&mut self) {
        while let Some(pod) = self.queues.awaited.overdue(self.now) {
            let record = self.observed.pods.get(&pod);
            if record.is_some_and(|record| record.volumes().is_some()) {
                self.pre_bind_failed(&pod, Plugin::VolumeBinding, "context deadline exceeded");
            } else {
                self.pre_bind_failed(&pod, Plugin::DynamicResources, "device binding timeout");
            }
        }
    }

    /// The Binding of the most important Pod whose preparations are complete.
    pub(crate) fn next_ready(&mut self) -> Option<Bind> {
        while let Some(uid) = self.queues.ready.first_key_value().map(|(_, pod)| pod.clone()) {
            match self.ready_bind(&uid) {
                Ok(bind) => {
                    self.move_to(&uid, Stage::Binding(BindingStep::SENT));
                    return Some(bind);
                }
                Err(message) => {
                    let cause = BindRefusalCause::ApiServer;
                    self.give_up_binding(&uid, None, BindRefusal { cause, message });
                }
            }
        }
        None
    }

    /// The Binding by what was reserved, with the handles that the objects have now.
    fn ready_bind(&self, uid: &PodUid) -> Result<Bind, String> {
        let record = self.observed.pods.get(uid).ok_or("it is not known")?;
        let reservation = record.reservation.as_ref().ok_or("nothing is reserved for it")?;
        let mut objects = Vec::with_capacity(reservation.granted.len());
        let mut grant = Grant::default();
        for granted in &reservation.granted {
            let object = self.observed.objects.ref_of(&granted.uid);
            let object = object.and_then(|object| self.observed.objects.get(object));
            let object = object.ok_or("an object that it refers to is gone")?;
            *grant.part_mut(object.object.kind) = Some(granted.clone());
            objects.push(object.clone());
        }
        Ok(Bind::new(&record.pod, reservation.node.clone(), grant, &objects))
    }

    /// The Pod has changed, or is being deleted, before its Binding was sent.
    pub(crate) fn abandon_unsent(&mut self, uid: &PodUid) {
        match self.stage_of(uid) {
            // Known when the writes have ended.
            Some(Stage::Binding(BindingStep::Writing)) => {
                self.move_to(uid, Stage::Binding(BindingStep::Abandoned));
            }
            Some(Stage::Binding(BindingStep::Awaiting { .. } | BindingStep::Ready)) => {
                self.abandon(uid);
            }
            _ => {}
        }
    }

    fn abandon(&mut self, uid: &PodUid) {
        let message = "the Pod has changed".to_owned();
        let refusal = BindRefusal { cause: BindRefusalCause::Obsolete, message };
        self.give_up_binding(uid, None, refusal);
    }

    /// A new term begins: what an earlier one has reserved for Bindings that were not sent may be taken by now.
    pub(crate) fn abandon_all_unsent(&mut self) {
        let is_unsent = |stage: &Stage| {
            matches!(stage, Stage::Binding(BindingStep::Awaiting { .. } | BindingStep::Ready))
        };
        let unsent = self.observed.pods.sorted().into_iter();
        let unsent = unsent.filter(|(_, record)| is_unsent(&record.stage));
        let unsent: Vec<PodUid> = unsent.map(|(uid, _)| uid.clone()).collect();
        for uid in unsent {
            self.abandon(&uid);
        }
    }

    /// The binding cycle ends without a Binding: what was reserved is free. `plugin`: whose PreBind failed, if it was not
    /// the Binding itself.
    pub(crate) fn give_up_binding(
        &mut self,
        uid: &PodUid,
        plugin: Option<Plugin>,
        refusal: BindRefusal,
    ) {
        if !matches!(self.stage_of(uid), Some(Stage::Binding(_))) {
            return;
        }
        self.move_to(uid, Stage::Gated);
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        self.stats.attempts_error += 1;
        record.failures = record.failures.saturating_add(1);
        record.not_before = self.now + backoff_after(record.failures);
        let place_again = record.pod.assignment == Assignment::Waiting;
        record.order = record.order.with_priority(record.pod.spec.scheduling.priority);
        let is_reported = match refusal.cause {
            BindRefusalCause::ApiServer => true,
            BindRefusalCause::Conflict => record.failures > 1,
            BindRefusalCause::Obsolete => false,
        };
        if let Some(reservation) =
            record.reservation.as_ref().filter(|_| place_again && is_reported)
        {
            let rejection = BindingRejection {
                plugin,
                node: reservation.node.clone(),
                message: refusal.message.into(),
            };
            record.rejection = Some(Box::new(Rejection::Binding(rejection)));
            self.outbox.reports.unschedulable(self.now, uid, &record.report);
        }
        if place_again {
            self.move_to(uid, Stage::Backoff);
        } else {
            self.forget_in_queue(uid);
        }
        let released = self.release_reservation(uid);
        // Its nomination is reserved again, as long as that lasts.
        if !place_again || !self.reserve_nominated(uid) {
            self.set_nomination(uid, None);
        }
        self.sync_pod_to_cluster(uid);
        if let Some(released) = released {
            self.wake_after_release(&released);
        }
    }
}

/// The claims for which a change of an object may matter.
fn awaited_claims(change: &ClusterObjectChange) -> Vec<AwaitedClaim> {
    match change {
        ClusterObjectChange::PersistentVolumeClaim { before, after } => {
            let claim = before.as_ref().or(after.as_ref());
            claim.map(|it| AwaitedClaim::OfVolume(it.key.clone())).into_iter().collect()
        }
        ClusterObjectChange::ResourceClaim { before, after } => {
            let claim = before.as_ref().or(after.as_ref());
            claim.map(|it| AwaitedClaim::OfDevices(it.key.clone())).into_iter().collect()
        }
        ClusterObjectChange::PersistentVolume { before, after } => {
            let of_claims = before.iter().chain(after).filter_map(|it| it.claim_ref.as_ref());
            of_claims.map(|it| AwaitedClaim::OfVolume(it.key.clone())).collect()
        }
        _ => Vec::new(),
    }
}
