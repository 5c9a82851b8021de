//! Wake-ups: exactly the Pods that a change may help are tried again.

mod claim_change;
mod cluster_change;
mod free_capacity;
mod index;
mod sweep;

use model::{Amount, ObjectKind, ObjectRef, PodUid, Reservable};

use rules::{ClaimToReserve, DeviceChange, VolumeChange};

use crate::engine::Engine;
use crate::ledger::Reservation;
use crate::queue::{Order, UnblockOn, Waiting};
use crate::record::Stage;

pub(crate) use cluster_change::ClusterChange;
pub(crate) use index::WakeIndex;

impl Engine {
    /// Bandwidth of objects, volumes or devices have been released.
    pub(crate) fn wake_after_release(&mut self, reservation: &Reservation) {
        if let Some(volumes) = &reservation.volumes {
            self.cluster_changed(ClusterChange::Volumes(VolumeChange::Released(volumes)));
        }
        // Claims whose devices are written have them still.
        let taken = &self.observed.cluster.devices.taken;
        let is_free = |claim: &&ClaimToReserve| taken.devices_of(&claim.uid).next().is_none();
        let released: Vec<_> = reservation.claims.iter().filter(is_free).cloned().collect();
        if !released.is_empty() {
            self.wake_after(ClusterChange::Devices(DeviceChange::Released(&released)));
        }
        for granted in &reservation.granted {
            if let Some(object) = self.observed.objects.ref_of(&granted.uid).cloned() {
                self.release_queue(&object);
            }
        }
    }

    pub(crate) fn release_queues_of(&mut self, kind: ObjectKind) {
        for object in
            self.observed.objects.with_queues().into_iter().filter(|object| object.kind == kind)
        {
            self.release_queue(&object);
        }
    }

    /// Releases the Pods of a queue that fit into what is free, in order.
    pub(crate) fn release_queue(&mut self, object: &ObjectRef) {
        loop {
            let (next, kept) = self.next_to_release(object);
            if kept {
                self.queues.kept.insert(object.clone(), self.queues.room_changes);
            }
            let Some(waiting) = next else { return };
            self.observed.objects.with_queue(object, |queue| queue.mark_released(&waiting));
            self.move_to(&waiting.pod, Stage::Active);
        }
    }

    /// Bandwidth is kept for a head only while some Node could take it. That may have changed.
    pub(crate) fn reconsider_kept(&mut self) {
        let changes = self.queues.room_changes;
        let outdated: Vec<ObjectRef> = self
            .queues
            .kept
            .iter()
            .filter(|(_, at)| **at != changes)
            .map(|(it, _)| it.clone())
            .collect();
        for object in outdated {
            self.queues.kept.remove(&object);
            self.release_queue(&object);
        }
    }

    /// The next Pod to release, and whether another could go if nothing were kept for the head.
    fn next_to_release(&self, object: &ObjectRef) -> (Option<Waiting>, bool) {
        let none = (None, false);
        let Some(queue) = self.observed.objects.queue(object) else { return none };
        let Ok(promise) = self.observed.objects.promise(object, self.now) else { return none };
        let is_used = self.ledger.object(&promise.of.uid).is_some();
        if promise.of.exclusive && (is_used || queue.has_released()) {
            return none;
        }
        let reserved = self.ledger.reserved(&promise.of.uid);
        let free = promise.reservable.saturating_sub(reserved).saturating_sub(queue.spoken_for());
        let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
        let fits = |order, amount| self.is_left_for(promise.of, order, amount, free);
        let next = queue.first_that(free, &over_quota, &fits);
        let head = queue.head(&over_quota);
        let (Some(next), Some(head)) = (next, head) else { return none };
        let passes_head = head.rank < next.rank && !next.amount.is_zero();
        if passes_head && self.is_kept_for(object, &head) {
            // A Pod that reserves nothing takes nothing from the head.
            return (queue.first_that(Amount::ZERO, &over_quota, &fits), true);
        }
        (Some(next), false)
    }

    /// Whether this much of what is free is left for a Pod of this order, after what nominated Pods hold that it must
    /// not push aside.
    fn is_left_for(&self, object: &Reservable, order: Order, amount: Amount, free: Amount) -> bool {
        let mut nominees = self.ledger.nominees_before(&object.uid, order).peekable();
        if object.exclusive {
            return nominees.peek().is_none();
        }
        let reserved = nominees.fold(Amount::ZERO, |sum, it| sum.saturating_add(it.amount));
        amount <= free.saturating_sub(reserved)
    }

    /// Whether free bandwidth is kept for the head of a queue: it was passed often enough, it asks
    /// no more than can be promised, and this object is all it lacks (else two heads on two objects
    /// could block each other).
    pub(crate) fn is_kept_for(&self, object: &ObjectRef, head: &Waiting) -> bool {
        let (order, bypass) = (head.rank.order, self.config.bypass);
        let passed = self
            .observed
            .objects
            .queue(object)
            .is_some_and(|queue| queue.has_been_passed_enough(order, self.now, bypass));
        let promise = self.observed.objects.promise(object, self.now);
        passed
            && promise.is_ok_and(|promise| head.amount <= promise.reservable)
            && self.observed.pods.get(&head.pod).is_some_and(|record| {
                let spec = &record.pod.spec;
                let mut others = spec.needs.iter().filter(|need| need.object != *object);
                others.all(|need| self.has_room(spec, need)) && self.fits_some_node(spec)
            })
    }

    /// Whether a namespace has reached its soft quota on the object.
    pub(crate) fn is_over_quota(&self, object: &ObjectRef, namespace: &str) -> bool {
        let quota = self.config.quotas.iter().find(|quota| *quota.namespace == *namespace);
        let used =
            self.observed.objects.get(object).and_then(|object| self.ledger.object(&object.uid));
        let (Some(quota), Some(used)) = (quota, used) else { return false };
        let used = used.of_namespace(namespace);
        let amount = match object.kind {
            ObjectKind::Corridor => quota.corridor,
            ObjectKind::MemoryBundle => quota.bundle,
        };
        amount.is_some_and(|limit| used.reserved >= limit)
            || quota.pods.is_some_and(|limit| used.pods >= limit)
    }

    /// Wakes the blocked Pods that a change may help.
    pub(crate) fn unblock(&mut self, object: &ObjectRef, concerns: impl Fn(UnblockOn) -> bool) {
        let Some(queue) = self.observed.objects.queue(object) else { return };
        let woken: Vec<PodUid> = queue
            .blocked()
            .filter(|(_, wake)| concerns(*wake))
            .map(|(pod, _)| pod.clone())
            .collect();
        for pod in woken {
            self.move_to(&pod, Stage::Active);
        }
    }

    /// A new spec may have moved the floor below what some ask, or opened other Nodes.
    pub(crate) fn reconsider_after_spec_change(&mut self, object: &Reservable) {
        let name = &object.object;
        let mut woken: Vec<PodUid> = Vec::new();
        if let Some(queue) = self.observed.objects.queue(name) {
            let asks_too_much = |uid: &&PodUid| {
                let need =
                    self.observed.pods.get(uid).and_then(|record| record.pod.spec.need_of(name));
                need.is_some_and(|need| need.reserves() > object.floor_asked_max)
            };
            woken.extend(queue.waiting().map(|(_, uid)| uid).filter(asks_too_much).cloned());
        }
        for pod in woken {
            self.wake(&pod);
        }
        // Its Nodes may be others now.
        self.judge_users_of(name);
    }

    /// To the active queue, or to back-off while that lasts.
    pub(crate) fn wake(&mut self, pod: &PodUid) {
        let due = self.observed.pods.get(pod).map_or(self.now, |record| record.not_before);
        self.move_to(pod, if due <= self.now { Stage::Active } else { Stage::Backoff });
    }
}
