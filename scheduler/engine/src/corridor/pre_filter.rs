//! PreFilter: whether the Corridors and MemoryBundles that a Pod refers to can be reserved for it now.

use model::{Amount, Need, ObjectKey, ObjectRef, PodSpec, Reservable};

use crate::engine::Engine;
use crate::queue::{Order, Rank};
use crate::rejection::{Cause, ObjectRejection, explains};

impl Engine {
    /// All objects that the Pod refers to, or the rejection by the first that does not admit it, together with the
    /// further rejections.
    pub(crate) fn pre_filter(
        &self,
        order: Order,
        spec: &PodSpec,
    ) -> Result<Vec<&Reservable>, Box<ObjectRejection>> {
        let mut needs = spec.needs.iter().map(|need| self.pre_filter_object(order, spec, need));
        let passed: Result<Vec<_>, _> = needs.by_ref().collect();
        passed.map_err(|mut first| {
            first.others = needs.filter_map(Result::err).map(|other| *other).collect();
            first
        })
    }

    /// The same for a nominated Pod, without regard to the bandwidth queues: its share is reserved already.
    pub(crate) fn pre_filter_nominated(
        &self,
        order: Order,
        spec: &PodSpec,
    ) -> Result<Vec<&Reservable>, Box<ObjectRejection>> {
        spec.needs.iter().map(|need| Ok(self.room_for(order, spec, need)?.0)).collect()
    }

    fn pre_filter_object(
        &self,
        order: Order,
        spec: &PodSpec,
        need: &Need,
    ) -> Result<&Reservable, Box<ObjectRejection>> {
        let (object, rejection) = self.room_for(order, spec, need)?;
        let holds = self.ledger.nominees(&object.uid).any(|(nominee, _)| nominee == order);
        if holds {
            return Ok(object);
        }
        let over_quota = self.is_over_quota(&need.object, &spec.namespace);
        match self.kept_for(&need.object, need, Rank { over_quota, order }) {
            Some(cause) => Err(rejection.because(cause)),
            None => Ok(object),
        }
    }

    /// Whether the object has room for the need, without regard to its queue. On success, returns the rejection with
    /// all figures filled in, for a caller that refuses for another reason.
    fn room_for(
        &self,
        order: Order,
        spec: &PodSpec,
        need: &Need,
    ) -> Result<(&Reservable, ObjectRejection), Box<ObjectRejection>> {
        let object = &need.object;
        let may_use = self.observed.objects.may_use(&spec.namespace, &object.key.namespace);
        // Figures of an object that the Pod may not use are not disclosed.
        let known = self.observed.objects.get(object).filter(|_| may_use);
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
            not_ready: None,
            others: Vec::new(),
        };
        if !may_use {
            return Err(rejection.because(Cause::OtherNamespace));
        }
        if let Some(object) =
            known.filter(|object| !self.observed.objects.may_share(&spec.namespace, object))
        {
            let domain = object.security_domain.clone();
            return Err(rejection.because(Cause::OtherSecurityDomain { domain }));
        }
        if known.is_some_and(|object| need.reserves() > object.floor_asked_max) {
            return Err(rejection.because(Cause::MoreThanFloor));
        }
        let promise = match self.observed.objects.promise(object, self.now) {
            Ok(promise) => promise,
            Err(cause) => {
                let not_ready = known.and_then(|object| object.not_ready.as_ref());
                rejection.not_ready = not_ready.filter(|it| explains(it, &cause)).cloned();
                return Err(rejection.because(cause));
            }
        };
        rejection.floor = promise.reservable;
        let taken = self.ledger.taken_for(&promise.of.uid, order);
        rejection.free = promise.reservable.saturating_sub(taken);
        if let Some(by) = self.sole_user(promise.of, order) {
            return Err(rejection.because(Cause::InUse { by }));
        }
        if need.reserves() > rejection.free {
            return Err(rejection.because(self.why_short(promise.of, need, order)));
        }
        Ok((promise.of, rejection))
    }

    /// The Pod that uses, or is nominated for, an object that only one Pod may use.
    fn sole_user(&self, object: &Reservable, order: Order) -> Option<ObjectKey> {
        if !object.exclusive {
            return None;
        }
        let used = self.ledger.object(&object.uid).and_then(|used| used.users.values().next());
        let mut nominees = self.ledger.nominees_before(&object.uid, order);
        used.or_else(|| nominees.next().map(|nominee| &nominee.holder.key)).cloned()
    }

    /// Whether reservations of nominated Pods are the reason why too little is free.
    fn why_short(&self, object: &Reservable, need: &Need, order: Order) -> Cause {
        let unused = object.floor().saturating_sub(self.ledger.reserved(&object.uid));
        let mut nominees = self.ledger.nominees_before(&object.uid, order);
        match nominees.find(|nominee| !nominee.amount.is_zero()) {
            Some(nominee) if need.reserves() <= unused => {
                Cause::HeldForNominated { pod: nominee.holder.key.clone() }
            }
            _ => Cause::Short,
        }
    }

    /// The Pod before `rank` for which the object's free bandwidth is kept, if there is one.
    fn kept_for(&self, object: &ObjectRef, need: &Need, rank: Rank) -> Option<Cause> {
        let queue = self.observed.objects.queue(object).filter(|_| !need.reserves().is_zero())?;
        let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
        let head = queue.head_before(rank, &over_quota)?;
        let record =
            self.observed.pods.get(&head.pod).filter(|_| self.is_kept_for(object, &head))?;
        let times_passed = queue.times_passed(head.rank.order);
        Some(Cause::KeptForHead { head: record.pod.key.clone(), times_passed })
    }

    /// Whether this need alone could be met now if the queue were empty.
    pub(crate) fn has_room(&self, spec: &PodSpec, need: &Need) -> bool {
        let last = Order::new(spec.scheduling.priority, i64::MAX, u64::MAX);
        self.room_for(last, spec, need).is_ok()
    }
}
