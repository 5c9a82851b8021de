//! The objects that Pods reserve bandwidth of, whether their figures can be trusted, and the queues in
//! front of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{
    Amount, Instant, Labels, ObjectKey, ObjectKind, ObjectRef, ObjectUid, Phase, Reservable,
    SECURITY_DOMAIN_LABEL,
};

use crate::queue::BandwidthQueue;
use crate::rejection::Cause;

/// An object's status counts while its daemon's Lease, renewed every 5 s, is younger than this.
pub const BACKEND_FRESH_FOR: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Objects {
    #[serde(with = "model::pairs")]
    by_ref: BTreeMap<ObjectRef, Reservable>,
    refs_by_uid: BTreeMap<ObjectUid, ObjectRef>,
    /// Those of which a window opens or closes, the next first.
    windows: BTreeSet<(Instant, ObjectRef)>,
    /// By name, not UID: Pods may wait for an object that does not exist yet.
    #[serde(with = "model::pairs")]
    queues: BTreeMap<ObjectRef, BandwidthQueue>,
    not_installed: BTreeSet<ObjectKind>,
    fresh_until: BTreeMap<ObjectKind, Instant>,
    /// AttestationPolicies, with the namespaces that each lets in.
    #[serde(with = "model::pairs")]
    tenants: BTreeMap<ObjectKey, BTreeSet<Arc<str>>>,
    /// The security domain of each Namespace that has one.
    domains: BTreeMap<Arc<str>, Arc<str>>,
}

/// The bandwidth that an object promises to all its Pods together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloorPromise<'a> {
    pub of: &'a Reservable,
    pub reservable: Amount,
}

impl Objects {
    pub fn insert(&mut self, object: Reservable) -> Option<Reservable> {
        let before = self.remove(&object.object.clone());
        self.refs_by_uid.insert(object.uid.clone(), object.object.clone());
        if let Some((at, _)) = object.floor_asked_next {
            self.windows.insert((at, object.object.clone()));
        }
        self.by_ref.insert(object.object.clone(), object);
        before
    }

    pub fn remove(&mut self, object: &ObjectRef) -> Option<Reservable> {
        let before = self.by_ref.remove(object)?;
        self.refs_by_uid.remove(&before.uid);
        if let Some((at, _)) = before.floor_asked_next {
            self.windows.remove(&(at, object.clone()));
        }
        Some(before)
    }

    /// The same objects with empty queues.
    pub fn without_queues(self) -> Self {
        Self { queues: BTreeMap::new(), ..self }
    }

    pub fn get(&self, object: &ObjectRef) -> Option<&Reservable> {
        self.by_ref.get(object)
    }

    pub fn refs(&self) -> impl Iterator<Item = ObjectRef> {
        self.by_ref.keys().cloned()
    }

    pub fn ref_of(&self, uid: &ObjectUid) -> Option<&ObjectRef> {
        self.refs_by_uid.get(uid)
    }

    pub fn with_queues(&self) -> Vec<ObjectRef> {
        self.queues.keys().cloned().collect()
    }

    pub fn queue(&self, object: &ObjectRef) -> Option<&BandwidthQueue> {
        self.queues.get(object)
    }

    /// Changes the queue; one that is empty afterwards is dropped.
    pub fn with_queue<R>(
        &mut self,
        object: &ObjectRef,
        change: impl FnOnce(&mut BandwidthQueue) -> R,
    ) -> R {
        let queue = self.queues.entry(object.clone()).or_default();
        let result = change(queue);
        if queue.is_empty() {
            self.queues.remove(object);
        }
        result
    }

    pub fn set_installed(&mut self, kind: ObjectKind, installed: bool) {
        if installed {
            self.not_installed.remove(&kind);
        } else {
            self.not_installed.insert(kind);
        }
    }

    /// When the next window of an object opens or closes.
    pub fn next_window(&self) -> Option<Instant> {
        self.windows.first().map(|(at, _)| *at)
    }

    /// Objects of which a window has opened or closed by now ask for another floor from now on.
    pub fn turn_windows(&mut self, now: Instant) -> Vec<ObjectRef> {
        let mut turned = Vec::new();
        while self.windows.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.windows.pop_first() else { break };
            let object = self.by_ref.get_mut(&name);
            if let Some((object, (_, floor))) =
                object.and_then(|it| it.floor_asked_next.take().map(|next| (it, next)))
            {
                object.floor_asked = floor;
                turned.push(name);
            }
        }
        turned
    }

    pub fn backend_seen(&mut self, kind: ObjectKind, now: Instant, age: Duration) {
        self.fresh_until.insert(kind, now + BACKEND_FRESH_FOR.saturating_sub(age));
    }

    pub fn backend_gone(&mut self, kind: ObjectKind) {
        self.fresh_until.remove(&kind);
    }

    /// When the next backend that is fresh now falls silent, unless it is heard of before.
    pub fn next_stale(&self, now: Instant) -> Option<Instant> {
        self.fresh_until.values().copied().filter(|until| *until > now).min()
    }

    pub fn fresh_kinds(&self, now: Instant) -> BTreeSet<ObjectKind> {
        ObjectKind::ALL.into_iter().filter(|kind| self.is_fresh(*kind, now)).collect()
    }

    pub fn is_fresh(&self, kind: ObjectKind, now: Instant) -> bool {
        self.fresh_until.get(&kind).is_some_and(|until| now < *until)
    }

    pub fn policy_seen(&mut self, policy: ObjectKey, tenants: BTreeSet<Arc<str>>) {
        self.tenants.insert(policy, tenants);
    }

    pub fn policy_gone(&mut self, policy: &ObjectKey) {
        self.tenants.remove(policy);
    }

    /// Whether the Namespace's security domain is another now.
    pub fn namespace_seen(&mut self, name: Arc<str>, labels: &Labels) -> bool {
        match labels.get(SECURITY_DOMAIN_LABEL).cloned() {
            Some(domain) => self.domains.insert(name, domain.clone()) != Some(domain),
            None => self.namespace_gone(&name),
        }
    }

    pub fn namespace_gone(&mut self, name: &str) -> bool {
        self.domains.remove(name).is_some()
    }

    /// Whether the namespace may share the object: its owner always, others of the same security
    /// domain.
    pub fn may_share(&self, namespace: &str, object: &Reservable) -> bool {
        object.security_domain.is_empty()
            || *object.object.key.namespace == *namespace
            || self.domains.get(namespace) == Some(&object.security_domain)
    }

    /// Whether a namespace may use objects of another: always its own, others if an AttestationPolicy of the owner allows
    /// it.
    pub fn may_use(&self, namespace: &str, owner: &str) -> bool {
        let of_owner = |policy: &ObjectKey| *policy.namespace == *owner;
        namespace == owner
            || self
                .tenants
                .iter()
                .filter(|(policy, _)| of_owner(policy))
                .any(|(_, tenants)| tenants.contains(namespace))
    }

    /// What the object promises now, or why it promises nothing.
    ///
    /// It is the whole floor or nothing: what is measured above the floor is noise, and below it
    /// the floor is not met for any Pod.
    pub fn promise(&self, object: &ObjectRef, now: Instant) -> Result<FloorPromise<'_>, Cause> {
        if self.not_installed.contains(&object.kind) {
            return Err(Cause::NotInstalled);
        }
        let of = self.by_ref.get(object).ok_or(Cause::NotFound)?;
        if of.deleting || of.phase == Phase::Releasing {
            return Err(Cause::Releasing);
        }
        if !self.is_fresh(object.kind, now) {
            return Err(Cause::Stale);
        }
        if of.measured < of.floor() {
            return Err(Cause::BelowFloor);
        }
        if of.phase != Phase::Ready {
            return Err(Cause::NotReady);
        }
        Ok(FloorPromise { of, reservable: of.floor() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::CorridorBuilder;

    fn cause(object: Reservable, age: Duration) -> Result<Amount, Cause> {
        let mut objects = Objects::default();
        let name = object.object.clone();
        objects.insert(object);
        objects.backend_seen(ObjectKind::Corridor, Instant::START, age);
        objects.promise(&name, Instant::START).map(|promise| promise.reservable)
    }

    #[test]
    fn promises_the_floor_or_nothing() {
        let ready = || CorridorBuilder::new("a/c1", 100);
        let now = Duration::ZERO;
        assert_eq!(cause(ready().achievable(140.0).build(), now), Ok(Amount::from_whole(100)));
        assert_eq!(cause(ready().achievable(99.9).build(), now), Err(Cause::BelowFloor));
        assert_eq!(cause(ready().deleting().build(), now), Err(Cause::Releasing));
        assert_eq!(cause(ready().phase(Phase::Degraded).build(), now), Err(Cause::NotReady));
        assert_eq!(cause(ready().build(), Duration::from_secs(15)), Err(Cause::Stale));
    }

    #[test]
    fn a_raised_floor_promises_nothing_more_until_corrd_confirms_it() {
        let raised = CorridorBuilder::new("a/c1", 200).confirmed(100.0).achievable(150.0).build();
        assert_eq!(cause(raised, Duration::ZERO), Ok(Amount::from_whole(100)));
    }

    #[test]
    fn only_a_policy_of_the_owner_lets_others_in() {
        let mut objects = Objects::default();
        let tenants = || BTreeSet::from([Arc::from("guest")]);
        assert!(objects.may_use("owner", "owner") && !objects.may_use("guest", "owner"));
        objects.policy_seen(ObjectKey::new("guest", "mine"), tenants());
        assert!(!objects.may_use("guest", "owner"), "a tenant cannot let itself in");
        objects.policy_seen(ObjectKey::new("owner", "p"), tenants());
        assert!(objects.may_use("guest", "owner") && !objects.may_use("other", "owner"));
        objects.policy_gone(&ObjectKey::new("owner", "p"));
        assert!(!objects.may_use("guest", "owner"));
    }
}
