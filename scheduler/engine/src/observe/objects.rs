//! Corridors, MemoryBundles, their backends, and the namespaces that may use them.

use std::time::Duration;

use model::{ObjectKind, ObjectRef, PodUid, Reservable};

use crate::engine::Engine;
use crate::queue::UnblockOn;

impl Engine {
    pub(super) fn object_seen(&mut self, object: Reservable) {
        let (name, now) = (object.object.clone(), self.now);
        self.observed.objects.set_installed(name.kind, true);
        let cause_before = self.observed.objects.promise(&name, now).err();
        let before = self.observed.objects.insert(object);
        let Some(after) = self.observed.objects.get(&name).cloned() else { return };
        self.recheck_nominations_needing(|needed| *needed == name);
        let spec_changed = before.as_ref().is_none_or(|before| {
            (before.generation, &before.uid) != (after.generation, &after.uid)
        });
        // For scheduling: a phase alone promises nothing while the daemon is silent or the floor is missed.
        let entered_ready =
            cause_before.is_some() && self.observed.objects.promise(&name, now).is_ok();
        let domain_changed =
            before.as_ref().is_none_or(|before| before.security_domain != after.security_domain);
        // A raised floor counts when the daemon has confirmed it, not when it is asked for.
        let floor_changed = before.as_ref().is_some_and(|before| before.floor() != after.floor());
        let spec_changed_or_took_effect = spec_changed || floor_changed;
        self.unblock(&name, |wake| match wake {
            UnblockOn::SpecChange => spec_changed_or_took_effect,
            UnblockOn::SpecChangeOrReady => spec_changed_or_took_effect || entered_ready,
            UnblockOn::DomainChange => domain_changed,
            UnblockOn::PolicyChange => false,
        });
        if spec_changed {
            self.reconsider_after_spec_change(&after);
        }
        self.release_queue(&name);
        self.outbox.uses.changed(&name);
        let says = |it: &Reservable| {
            (it.phase, it.not_ready.as_ref().map(|not_ready| not_ready.reason.clone()))
        };
        let says_another = before.is_none_or(|before| says(&before) != says(&after));
        if says_another {
            self.report_waiting_for(&name);
        } else if cause_before != self.observed.objects.promise(&name, now).err() {
            self.report_queue(&name);
        }
    }

    /// A namespace belongs to another security domain than before: a rare event, so all Pods
    /// that were refused for that reason are tried again.
    pub(super) fn domains_changed(&mut self) {
        self.recheck_nominations_needing(|_| true);
        for object in self.observed.objects.with_queues() {
            self.unblock(&object, |wake| wake == UnblockOn::DomainChange);
            self.report_queue(&object);
        }
    }

    /// The namespaces that may use the objects of this owner have changed. Pods in queues are checked again when their
    /// turn comes; Pods that were refused are tried now.
    pub(super) fn policy_changed(&mut self, owner: &str) {
        let of_owner = |object: &ObjectRef| *object.key.namespace == *owner;
        self.recheck_nominations_needing(of_owner);
        for object in self.observed.objects.with_queues().into_iter().filter(of_owner) {
            self.unblock(&object, |wake| wake == UnblockOn::PolicyChange);
            self.report_queue(&object);
        }
    }

    pub(super) fn backend_seen(&mut self, kind: ObjectKind, age: Duration) {
        self.observed.objects.backend_seen(kind, self.now, age);
        if self.observed.objects.is_fresh(kind, self.now) && !self.observed.fresh.contains(&kind) {
            self.release_queues_of(kind);
            self.unblock_waiting_for_ready(kind);
        }
        self.note_freshness();
    }

    /// With its daemon heard of again, what an object says counts again: it enters Ready for scheduling, whether its
    /// status came before or comes after.
    fn unblock_waiting_for_ready(&mut self, kind: ObjectKind) {
        for object in
            self.observed.objects.with_queues().into_iter().filter(|object| object.kind == kind)
        {
            if self.observed.objects.promise(&object, self.now).is_ok() {
                self.unblock(&object, |wake| wake == UnblockOn::SpecChangeOrReady);
            }
        }
    }

    /// Reports anew on waiting Pods when a backend falls silent or is back.
    pub(crate) fn note_freshness(&mut self) {
        let is_as_before = |kind| {
            self.observed.objects.is_fresh(kind, self.now) == self.observed.fresh.contains(&kind)
        };
        if ObjectKind::ALL.into_iter().all(is_as_before) {
            return;
        }
        let fresh = self.observed.objects.fresh_kinds(self.now);
        let before = std::mem::replace(&mut self.observed.fresh, fresh);
        self.recheck_nominations_needing(|_| true);
        for object in self.observed.objects.with_queues() {
            if before.contains(&object.kind) != self.observed.fresh.contains(&object.kind) {
                self.report_queue(&object);
            }
        }
    }

    /// Windows that open and close change what may be promised, before the daemon has said so.
    pub(crate) fn turn_windows(&mut self) {
        for object in self.observed.objects.turn_windows(self.now) {
            self.recheck_nominations_needing(|needed| *needed == object);
            self.release_queue(&object);
            self.outbox.uses.changed(&object);
            self.report_queue(&object);
        }
    }

    /// Reports anew on all Pods that refer to the object: those that wait for it, and those that wait for another object
    /// and lack this one, too.
    pub(super) fn report_waiting_for(&mut self, object: &ObjectRef) {
        self.report_queue(object);
        for other in self.observed.objects.with_queues() {
            let lacks_both = other != *object
                && self.observed.objects.queue(&other).is_some_and(|queue| {
                    let needs = |pod: &PodUid| {
                        self.observed
                            .pods
                            .get(pod)
                            .is_some_and(|it| it.pod.spec.need_of(object).is_some())
                    };
                    queue.waiting().any(|(_, pod)| needs(pod))
                });
            if lacks_both {
                self.report_queue(&other);
            }
        }
    }

    pub(super) fn report_queue(&mut self, object: &ObjectRef) {
        if self.observed.objects.queue(object).is_some() {
            self.outbox.reports.queue_changed(object);
        }
    }
}
