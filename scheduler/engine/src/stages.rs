//! The stages of a Pod, and the one function that moves it between them.

use model::{Amount, Need, ObjectRef, Pod, PodSpec, PodUid};
use rules::{Chances, Prospect};

use crate::engine::Engine;
use crate::queue::{Order, ParkKey, UnblockOn};
use crate::record::{BindingStep, Stage};
use crate::rejection::Rejection;
use crate::throttling::BindingChange;
use crate::wakes_on::WakeOn;

impl Engine {
    /// Moves a Pod to another stage, and in and out of the queues: the only way a Pod changes stage.
    pub(crate) fn move_to(&mut self, uid: &PodUid, to: Stage) {
        let Some(record) = self.observed.pods.get_mut(uid) else { return };
        let from = std::mem::replace(&mut record.stage, to.clone());
        *self.stats.of_stage(&from) -= 1;
        *self.stats.of_stage(&to) += 1;
        self.queue_metrics.moved(&from, &to);
        // A Pod that is put off at once was not decided.
        let is_put_off = matches!(to, Stage::Active | Stage::Backoff | Stage::Throttled);
        if self.trying.as_ref() == Some(uid) && !is_put_off {
            self.queue_metrics.tried(self.now, record);
        }
        let (order, pod) = (record.order, record.pod.clone());
        let binding = BindingChange::of(&from, &to);
        self.leave_stage(&pod, order, from);
        self.enter_stage(&pod, order, to);
        if let Some(change) = binding {
            self.note_binding(&pod, change);
        }
    }

    fn leave_stage(&mut self, pod: &Pod, order: Order, from: Stage) {
        let Pod { uid, spec, .. } = pod;
        match from {
            Stage::Active => self.queues.active.remove(order),
            Stage::Backoff => self.queues.backoff.remove(uid),
            Stage::Throttled => self.queues.throttle.leave(&spec.namespace, order),
            Stage::Parked => {
                let record = self.observed.pods.get_mut(uid);
                if let Some(key) = record.and_then(|record| record.parked_as.take())
                    && self.queues.parked.remove(&key, order)
                {
                    self.queues.wake_index.remove(&key.plain());
                }
            }
            Stage::InQueue(object) | Stage::Blocked(object) => {
                let (objects, amount) = (&mut self.observed.objects, reserves(spec, &object));
                objects.with_queue(&object, |queue| queue.leave(&spec.namespace, order, amount));
            }
            Stage::Binding(BindingStep::Awaiting { until }) => {
                if let Some(record) = self.observed.pods.get(uid) {
                    self.queues.awaited.remove(record, until);
                }
            }
            Stage::Binding(BindingStep::Ready) => drop(self.queues.ready.remove(&order)),
            Stage::Gated
            | Stage::Finished
            | Stage::OnHold
            | Stage::Reporting
            | Stage::Binding(_)
            | Stage::Bound => {}
        }
    }

    fn enter_stage(&mut self, pod: &Pod, order: Order, to: Stage) {
        let Pod { uid, spec, .. } = pod;
        match to {
            Stage::Active => self.queues.active.push(uid.clone(), order),
            Stage::Backoff => {
                let due = self.observed.pods.get(uid).map_or(self.now, |record| record.not_before);
                self.queues.backoff.push(uid.clone(), due, order);
            }
            Stage::Throttled => self.queues.throttle.wait(&spec.namespace, order, uid),
            Stage::Parked => self.park(uid),
            Stage::InQueue(object) => {
                let (objects, amount) = (&mut self.observed.objects, reserves(spec, &object));
                let uid = uid.clone();
                objects
                    .with_queue(&object, |queue| queue.join(&spec.namespace, order, amount, uid));
            }
            Stage::Blocked(object) => self.block(uid, order, &object),
            Stage::Binding(BindingStep::Awaiting { until }) => {
                if let Some(record) = self.observed.pods.get(uid) {
                    self.queues.awaited.insert(record, until);
                }
            }
            Stage::Binding(BindingStep::Ready) => {
                self.queues.ready.insert(order, uid.clone());
            }
            Stage::Gated
            | Stage::Finished
            | Stage::OnHold
            | Stage::Reporting
            | Stage::Binding(_)
            | Stage::Bound => {}
        }
    }

    fn block(&mut self, uid: &PodUid, order: Order, object: &ObjectRef) {
        let rejection = self.observed.pods.get(uid).and_then(|record| record.rejection.as_deref());
        let wake = match rejection.map(Rejection::wake_on) {
            Some(WakeOn::ObjectSpecChange { .. }) => UnblockOn::SpecChange,
            Some(WakeOn::PolicyChange { .. }) => UnblockOn::PolicyChange,
            Some(WakeOn::DomainChange { .. }) => UnblockOn::DomainChange,
            _ => UnblockOn::SpecChangeOrReady,
        };
        self.observed.objects.with_queue(object, |queue| queue.block(order, uid.clone(), wake));
    }

    /// A Pod that has just been rejected fits nowhere; but a nominated one may have victims that leave.
    fn park(&mut self, uid: &PodUid) {
        let Some(record) = self.observed.pods.get(uid) else { return };
        let (key, order) = (record.park_key(), record.order);
        let scheduling = self.placing.project(&key.scheduling);
        let key = self.queues.parked.shared(ParkKey { scheduling, ..key });
        let new = if key.nominated.is_none() || self.queues.parked.has(&key) {
            <(Chances, Prospect)>::default()
        } else {
            let is_known = self.queues.parked.has_common(&key);
            let chances = if is_known { Chances::default() } else { self.chances_of(&key.plain()) };
            (chances, self.prospect_of(&key))
        };
        if let Some(record) = self.observed.pods.get_mut(uid) {
            record.parked_as = Some(Box::new(key.clone()));
        }
        let class = key.plain();
        if self.queues.parked.insert(key, order, uid.clone(), new) {
            self.file(&class);
        }
    }
}

/// What the Pod reserves of the object.
fn reserves(spec: &PodSpec, object: &ObjectRef) -> Amount {
    spec.need_of(object).map(Need::reserves).unwrap_or_default()
}
