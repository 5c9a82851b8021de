//! Whether the objects that a Pod refers to let it pass.

use model::{Amount, Need, ObjectKey, ObjectRef, PodSpec, Reservable};

use crate::engine::Engine;
use crate::line::Rank;
use crate::queue::Order;
use crate::rejection::{Cause, ObjectRejection};

impl Engine {
    /// Whether every object that the Pod refers to lets it pass now: all of them, or the first
    /// that does not.
    pub(crate) fn gate(
        &self,
        order: Order,
        spec: &PodSpec,
    ) -> Result<Vec<&Reservable>, Box<ObjectRejection>> {
        spec.needs.iter().map(|need| self.gate_of(order, spec, need)).collect()
    }

    fn gate_of(
        &self,
        order: Order,
        spec: &PodSpec,
        need: &Need,
    ) -> Result<&Reservable, Box<ObjectRejection>> {
        let object = &need.object;
        let may_use = self.objects.may_use(&spec.namespace, &object.key.namespace);
        // Nothing is told of an object that the Pod may not use.
        let known = self.objects.get(object).filter(|_| may_use);
        let mut rejection = ObjectRejection {
            object: object.clone(),
            policy: spec
                .failure_policy
                .unwrap_or(self.config.profiles.of(&spec.profile).failure_policy),
            cause: Cause::Short,
            phase: known.map(|object| object.phase),
            needed: need.amount,
            free: Amount::ZERO,
            floor: known.map(|object| object.floor_asked).unwrap_or_default(),
            measured: known.map(|object| object.measured).unwrap_or_default(),
        };
        if !may_use {
            return Err(rejection.because(Cause::OtherNamespace));
        }
        if let Some(object) =
            known.filter(|object| !self.objects.may_share(&spec.namespace, object))
        {
            let domain = object.security_domain.clone();
            return Err(rejection.because(Cause::OtherSecurityDomain { domain }));
        }
        if known.is_some_and(|object| need.reserves() > object.floor_asked) {
            return Err(rejection.because(Cause::MoreThanFloor));
        }
        let promise = match self.objects.promise(object, self.now) {
            Ok(promise) => promise,
            Err(cause) => return Err(rejection.because(cause)),
        };
        rejection.floor = promise.reservable;
        rejection.free = promise.reservable.saturating_sub(self.ledger.reserved(&promise.of.uid));
        if let Some(by) = self.sole_user(promise.of) {
            return Err(rejection.because(Cause::InUse { by }));
        }
        if need.reserves() > rejection.free {
            return Err(rejection.because(Cause::Short));
        }
        let over_quota = self.is_over_quota(object, &spec.namespace);
        match self.kept_for(object, need, Rank { over_quota, order }) {
            Some(cause) => Err(rejection.because(cause)),
            None => Ok(promise.of),
        }
    }

    /// Who has an object that only one Pod may have.
    fn sole_user(&self, object: &Reservable) -> Option<ObjectKey> {
        let used = self.ledger.object(&object.uid).filter(|_| object.exclusive)?;
        used.users.values().next().cloned()
    }

    /// For whom the object's free bandwidth is kept, if that is somebody before `rank`.
    fn kept_for(&self, object: &ObjectRef, need: &Need, rank: Rank) -> Option<Cause> {
        let line = self.objects.line(object).filter(|_| !need.reserves().is_zero())?;
        let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
        let head = line.head_before(rank, &over_quota)?;
        let record = self.pods.get(&head.pod).filter(|_| self.is_kept_for(object, &head))?;
        let times_passed = line.times_passed(head.rank.order);
        Some(Cause::KeptForHead { head: record.pod.key.clone(), times_passed })
    }

    /// Whether this need alone could be met now, were nobody else waiting.
    pub(crate) fn has_room(&self, spec: &PodSpec, need: &Need) -> bool {
        let free = self.objects.promise(&need.object, self.now).is_ok_and(|promise| {
            let reserved = self.ledger.reserved(&promise.of.uid);
            self.sole_user(promise.of).is_none()
                && self.objects.may_share(&spec.namespace, promise.of)
                && need.reserves() <= promise.reservable.saturating_sub(reserved)
        });
        free && self.objects.may_use(&spec.namespace, &need.object.key.namespace)
    }
}
