//! The watched resources, and the engine event for a change of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use engine::{Event, Watched, WatchedId, WatchedKind};
use kube::Resource;
use model::{Assignment, NodeName, ObjectKind, ObjectRef, ObjectUid, Owner, OwnerKind, PodUid};
use own_writes::OwnWrites;
use tokio::time::Instant as Moment;

use crate::act::Condition;
use crate::backends::{Backend, Renewals};
use crate::clock::{age, wall_clock};
use crate::phases::Phases;
use crate::profile_names::ProfileNames;
use crate::shared::Shared;
use crate::tampering::{Guard, OURS, SeenUse};
use crate::time_to_ready::{ReadySample, TimeToReady};
use crate::tracker::{Gone, key};
use crate::translate;
use crate::watch::Unreadable;
use crate::wire::{
    WireBudget, WireBundle, WireCorridor, WireDeviceClass, WireLease, WireNamespace, WireNode,
    WireObjectCondition, WirePod, WirePolicy, WireReplicaSet, WireReplicationController,
    WireService, WireStatefulSet,
};

/// A resource that is listed, then watched.
pub(crate) trait WatchedResource: Resource<DynamicType = ()> {
    const KIND: WatchedKind;
    /// It comes with a CRD or with newer API servers. Without it, only Pods that refer to it wait.
    const MAY_BE_ABSENT: bool = false;

    /// The event for an object that was added or modified, if it changes anything.
    fn seen(self, watched: &mut WatchState) -> Option<Event>;

    fn gone(gone: Gone, watched: &mut WatchState) -> Option<Event>;

    /// It exists, cannot be read, and never could.
    fn unreadable(_: &Unreadable) -> Option<Event> {
        None
    }

    /// Another object has its name now. Most are known by name, so that the event for the new object suffices.
    fn replaced(_: Gone, _: &mut WatchState) -> Option<Event> {
        None
    }
}

/// What the driver itself keeps of watched objects between two events.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    pub profiles: ProfileNames,
    /// The engine's time of the input that is being handled.
    pub now: model::Instant,
    pub renewals: Renewals,
    pub time_to_ready: TimeToReady,
    /// Objects that have become Ready, or have not in time.
    pub became_ready: Vec<ReadySample>,
    pub phases: Phases,
    /// What the objects' conditions of ours say, and since when: a restarted scheduler goes on from
    /// there. They go with the object.
    pub use_conditions: BTreeMap<ObjectUid, Vec<Condition>>,
    /// UIDs of objects that could not be read, and for which that was logged.
    warned: BTreeSet<String>,
    /// Another replica leads, and writes them.
    pub follows: bool,
    pub guard: Guard,
    shared: Shared,
    /// What the controllers of this process have really written.
    pub own_writes: Arc<OwnWrites>,
    /// Objects whose status has to be written again, because another writer has overwritten it.
    pub overwritten: Vec<ObjectRef>,
}

/// Beyond this many, a warning may be logged twice.
const WARNINGS_MAX: usize = 10_000;

impl WatchState {
    pub fn of(profiles: ProfileNames) -> Self {
        Self { profiles, ..Self::default() }
    }

    /// Whether it has not been logged yet that this object cannot be read.
    pub fn is_first_warning(&mut self, uid: Option<&str>) -> bool {
        if self.warned.len() >= WARNINGS_MAX {
            self.warned.clear();
        }
        self.warned.insert(uid.unwrap_or_default().to_owned())
    }

    fn conditions(&mut self, uid: &ObjectUid, conditions: &[WireObjectCondition]) {
        let known = || conditions.iter().filter_map(condition).collect();
        if self.follows {
            self.use_conditions.insert(uid.clone(), known());
        }
        self.use_conditions.entry(uid.clone()).or_insert_with(known);
    }

    fn forget(&mut self, gone: &Gone) {
        let uid = ObjectUid::from(gone.1.uid.clone());
        self.use_conditions.remove(&uid);
        self.guard.uses.gone(&uid);
        self.time_to_ready.forget(&uid);
        self.phases.forget(&uid);
        self.own_writes.forget(&gone.1.uid);
    }

    /// The Pod as the engine sees it: without a forged grant.
    pub fn pod(&mut self, wire: &WirePod) -> Option<model::Pod> {
        let counts = self.guard.pods.sees(wire, &self.profiles, Instant::now());
        let mut pod = self.shared.pod(translate::pod(wire, &self.profiles)?);
        if let Assignment::Bound { grant, .. } = &mut pod.assignment
            && !counts
        {
            *grant = None;
        }
        Some(pod)
    }
}

/// A condition that is ours to write.
fn condition(wire: &WireObjectCondition) -> Option<Condition> {
    let name = OURS.into_iter().find(|it| *it == wire.condition_type)?;
    Some(Condition { name, status: wire.status == "True", since: wire.last_transition_time? })
}

/// Pods are known by their UIDs. One that does not concern us, or does no more, is gone for us.
impl WatchedResource for WirePod {
    const KIND: WatchedKind = WatchedKind::Pods;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let gone = || self.metadata.uid.as_deref().map(|uid| Event::gone(PodUid::from(uid)));
        watched.pod(&self).map(Event::seen).or_else(gone)
    }

    fn gone((_, version): Gone, watched: &mut WatchState) -> Option<Event> {
        let uid = PodUid::from(version.uid);
        watched.guard.pods.gone(&uid);
        Some(Event::gone(uid))
    }

    fn replaced(gone: Gone, watched: &mut WatchState) -> Option<Event> {
        Self::gone(gone, watched)
    }

    /// What it uses of its Node is not known, so nothing more is put there.
    fn unreadable(left: &Unreadable) -> Option<Event> {
        let (pod, node) = (left.metadata.uid.as_deref()?, left.node.as_deref()?);
        Some(Event::PodUnreadable { pod: pod.into(), node: NodeName::new(node) })
    }
}

impl WatchedResource for WireNode {
    const KIND: WatchedKind = WatchedKind::Nodes;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        Some(Event::seen(watched.shared.node(translate::node(&self))))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(NodeName::new(&key.name)))
    }
}

/// Corridors and MemoryBundles differ only in how they are read.
macro_rules! watched_object {
    ($wire:ty, $kind:expr, $translate:path) => {
        impl WatchedResource for $wire {
            const KIND: WatchedKind = WatchedKind::Objects($kind);
            const MAY_BE_ABSENT: bool = true;

            fn seen(self, watched: &mut WatchState) -> Option<Event> {
                let uid = ObjectUid::new(self.metadata.uid.as_deref().unwrap_or_default());
                watched.conditions(&uid, &self.status.conditions);
                let object = ObjectRef { kind: $kind, key: key(&self.metadata) };
                let created = self.metadata.creation_timestamp.as_ref().map(|time| time.0);
                let phase = self.status.phase.unwrap_or_default();
                watched.phases.sees(&object, &uid, phase);
                watched.note_readiness($kind, &uid, created, phase == crds::Phase::Ready);
                let is_overwritten = watched.guard.uses.sees(&SeenUse {
                    object: &object,
                    uid: &uid,
                    version: self.metadata.resource_version.as_deref(),
                    in_use: self.status.in_use,
                    conditions: &self.status.conditions,
                });
                if is_overwritten {
                    watched.overwritten.push(object);
                }
                let seen = translate::Moment { wall_clock: wall_clock(), engine: watched.now };
                Some(Event::seen($translate(self, &watched.own_writes, seen)))
            }

            fn gone(gone: Gone, watched: &mut WatchState) -> Option<Event> {
                watched.forget(&gone);
                Some(Event::gone(ObjectRef { kind: $kind, key: gone.0 }))
            }

            fn replaced(gone: Gone, watched: &mut WatchState) -> Option<Event> {
                watched.forget(&gone);
                None
            }
        }
    };
}

watched_object!(WireCorridor, ObjectKind::Corridor, translate::corridor);
watched_object!(WireBundle, ObjectKind::MemoryBundle, translate::bundle);

impl WatchedResource for WirePolicy {
    const KIND: WatchedKind = WatchedKind::Policies;
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let allowed_tenants = translate::allowed_tenants(&self);
        Some(Event::Seen(Watched::Policy { policy: key(&self.metadata), allowed_tenants }))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::Policy(key)))
    }
}

impl WatchedResource for WireNamespace {
    const KIND: WatchedKind = WatchedKind::Namespaces;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let labels = translate::labels(&self.metadata.labels.clone().unwrap_or_default());
        Some(Event::Seen(Watched::Namespace { name: key(&self.metadata).name, labels }))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::Namespace(key.name)))
    }
}

impl WatchedResource for WireLease {
    const KIND: WatchedKind = WatchedKind::Backends;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let backend = Backend::of_lease(&key(&self.metadata).name)?;
        let kind = backend.objects();
        let Some(renewed) = self.spec.renew_time.map(|renewed| renewed.0) else {
            watched.renewals.gone(backend);
            return kind.map(|kind| Event::Gone(WatchedId::Backend(kind)));
        };
        let age = watched.renewals.sees(backend, renewed, age(renewed), Moment::now())?;
        kind.map(|kind| Event::Seen(Watched::Backend { kind, age }))
    }

    fn gone((key, _): Gone, watched: &mut WatchState) -> Option<Event> {
        let backend = Backend::of_lease(&key.name)?;
        watched.renewals.gone(backend);
        backend.objects().map(|kind| Event::Gone(WatchedId::Backend(kind)))
    }
}

impl WatchedResource for WireBudget {
    const KIND: WatchedKind = WatchedKind::Budgets;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        Some(Event::seen(translate::budget(&self)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::Budget(key)))
    }
}

impl WatchedResource for WireService {
    const KIND: WatchedKind = WatchedKind::Services;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        Some(translate::service(&self))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::Service(key)))
    }
}

macro_rules! followed_owner {
    ($wire:ty, $kind:expr, $translate:path) => {
        impl WatchedResource for $wire {
            const KIND: WatchedKind = WatchedKind::Owners($kind);

            fn seen(self, _: &mut WatchState) -> Option<Event> {
                Some($translate(&self))
            }

            fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
                let owner = Owner { kind: $kind, name: key.name };
                Some(Event::Gone(WatchedId::Owner { namespace: key.namespace, owner }))
            }
        }
    };
}

followed_owner!(
    WireReplicationController,
    OwnerKind::ReplicationController,
    translate::replication_controller
);
followed_owner!(WireReplicaSet, OwnerKind::ReplicaSet, translate::replica_set);
followed_owner!(WireStatefulSet, OwnerKind::StatefulSet, translate::stateful_set);

/// Before Kubernetes 1.34 there is none that counts.
impl WatchedResource for WireDeviceClass {
    const KIND: WatchedKind = WatchedKind::DeviceClasses;
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let resource = self.spec.extended_resource_name.map(Arc::from);
        Some(Event::Seen(Watched::DeviceClass { class: key(&self.metadata).name, resource }))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::DeviceClass(key.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn seen<K: WatchedResource + serde::de::DeserializeOwned>(
        watched: &mut WatchState,
        object: Value,
    ) -> Option<Event> {
        serde_json::from_value::<K>(object).unwrap().seen(watched)
    }

    #[test]
    fn a_foreign_pod_that_lost_its_nomination_is_gone_for_us() {
        let watched = &mut WatchState::default();
        let mut pod = json!({
            "metadata": {"namespace": "a", "name": "p", "uid": "u", "resourceVersion": "1"},
            "spec": {"schedulerName": "other", "containers": [{}]},
            "status": {"nominatedNodeName": "n1"},
        });
        assert!(matches!(
            seen::<WirePod>(watched, pod.clone()),
            Some(Event::Seen(Watched::Pod(_)))
        ));
        pod["status"] = json!({});
        let told = seen::<WirePod>(watched, pod);
        assert!(
            matches!(&told, Some(Event::Gone(WatchedId::Pod(uid))) if uid.as_str() == "u"),
            "{told:?}"
        );
    }

    #[test]
    fn a_lease_tells_each_renewal_once_and_other_leases_nothing() {
        let watched = &mut WatchState::default();
        let lease = |name: &str, renewed: Value| json!({"metadata": {"name": name}, "spec": {"renewTime": renewed}});
        let time = json!("2026-01-01T00:00:00.000000Z");
        let corrd = lease(crds::backend_lease::CORRD, time.clone());
        let first = seen::<WireLease>(watched, corrd.clone());
        assert!(matches!(
            first,
            Some(Event::Seen(Watched::Backend { kind: ObjectKind::Corridor, .. }))
        ));
        assert!(seen::<WireLease>(watched, corrd).is_none());
        assert!(seen::<WireLease>(watched, lease("any", time)).is_none());
        let lost = seen::<WireLease>(watched, lease(crds::backend_lease::CORRD, Value::Null));
        assert!(matches!(lost, Some(Event::Gone(WatchedId::Backend(ObjectKind::Corridor)))));
    }

    #[test]
    fn conditions_of_ours_are_noted_once_and_go_with_their_object() {
        let watched = &mut WatchState::default();
        let corridor = |since: &str| {
            let condition =
                |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": since});
            json!({
                "metadata": {"namespace": "a", "name": "c", "uid": "u"},
                "status": {"conditions": [condition("InUse"), condition("Ready")]},
            })
        };
        seen::<WireCorridor>(watched, corridor("2026-01-01T00:00:00Z"));
        seen::<WireCorridor>(watched, corridor("2026-02-02T00:00:00Z"));
        let known = &watched.use_conditions[&ObjectUid::new("u")];
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].since, "2026-01-01T00:00:00Z".parse().unwrap());
        let mut tracker = crate::tracker::Tracker::default();
        let meta: WireCorridor = serde_json::from_value(corridor("2026-01-01T00:00:00Z")).unwrap();
        tracker.seen(&meta.metadata);
        let told = WireCorridor::gone(tracker.gone(&meta.metadata).unwrap(), watched);
        assert!(
            matches!(told, Some(Event::Gone(WatchedId::Object(_))))
                && watched.use_conditions.is_empty()
        );
    }
}
