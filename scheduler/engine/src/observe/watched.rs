//! The watched kinds: what an event shows of an object of each, and what the engine does with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{
    ClusterNode, LabelSelector, Labels, NodeName, ObjectKey, ObjectKind, ObjectRef, Owner,
    OwnerKind, Pod, PodDisruptionBudget, PodUid, Reservable,
};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::event::Event;

/// A kind that is watched. All must have been listed once before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WatchedKind {
    Nodes,
    Pods,
    Objects(ObjectKind),
    /// AttestationPolicies: the namespaces that one lets use its own namespace's objects.
    Policies,
    Namespaces,
    /// The Leases of the daemons behind objects: how long ago one was renewed, as of the event.
    Backends,
    Budgets,
    /// Services that select Pods. One that has no selector is no event, or is gone.
    Services,
    /// Controllers whose Pods are spread by default.
    Owners(OwnerKind),
    /// The extended resource that Pods may ask for to get a device of the class.
    DeviceClasses,
}

impl WatchedKind {
    pub const ALL: [Self; 13] = [
        Self::Nodes,
        Self::Pods,
        Self::Objects(ObjectKind::Corridor),
        Self::Objects(ObjectKind::MemoryBundle),
        Self::Policies,
        Self::Namespaces,
        Self::Backends,
        Self::Budgets,
        Self::Services,
        Self::Owners(OwnerKind::ReplicationController),
        Self::Owners(OwnerKind::ReplicaSet),
        Self::Owners(OwnerKind::StatefulSet),
        Self::DeviceClasses,
    ];
}

/// A watched object, as far as the engine looks at it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Watched {
    Node(ClusterNode),
    Pod(Pod),
    Object(Reservable),
    Policy { policy: ObjectKey, allowed_tenants: BTreeSet<Arc<str>> },
    Namespace { name: Arc<str>, labels: Labels },
    Backend { kind: ObjectKind, age: Duration },
    Budget(PodDisruptionBudget),
    Service { service: ObjectKey, selector: Labels },
    Owner { namespace: Arc<str>, owner: Owner, selector: LabelSelector },
    DeviceClass { class: Arc<str>, resource: Option<Arc<str>> },
}

/// What a watched object is known by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WatchedId {
    Node(NodeName),
    Pod(PodUid),
    Object(ObjectRef),
    Policy(ObjectKey),
    Namespace(Arc<str>),
    Backend(ObjectKind),
    Budget(ObjectKey),
    Service(ObjectKey),
    Owner { namespace: Arc<str>, owner: Owner },
    DeviceClass(Arc<str>),
}

impl Engine {
    pub(super) fn seen(&mut self, watched: Watched) {
        match watched {
            Watched::Node(node) => self.node_seen(node),
            Watched::Pod(pod) => self.pod_seen(pod),
            Watched::Object(object) => self.object_seen(object),
            Watched::Policy { policy, allowed_tenants } => {
                self.observed.objects.policy_seen(policy.clone(), allowed_tenants);
                self.policy_changed(&policy.namespace);
            }
            Watched::Namespace { name, labels } => {
                if self.observed.objects.namespace_seen(name.clone(), &labels) {
                    self.domains_changed();
                }
                self.namespace_labels_seen(name, labels);
            }
            Watched::Backend { kind, age } => self.backend_seen(kind, age),
            Watched::Budget(budget) => self.budget_seen(budget),
            Watched::Service { service, selector } => self.service_seen(service, selector),
            Watched::Owner { namespace, owner, selector } => {
                self.owner_seen(namespace, owner, selector);
            }
            Watched::DeviceClass { class, resource } => self.device_class_seen(class, resource),
        }
    }

    pub(super) fn gone(&mut self, id: WatchedId) {
        match id {
            WatchedId::Node(name) => self.node_gone(&name),
            WatchedId::Pod(uid) => self.pod_gone(&uid),
            WatchedId::Object(object) => {
                self.observed.objects.remove(&object);
                self.question_nominees_for(|needed| *needed == object);
                self.outbox.uses.forget(&object);
                self.report_waiting_for(&object);
            }
            WatchedId::Policy(policy) => {
                self.observed.objects.policy_gone(&policy);
                self.policy_changed(&policy.namespace);
            }
            WatchedId::Namespace(name) => {
                if self.observed.objects.namespace_gone(&name) {
                    self.domains_changed();
                }
                self.namespace_labels_gone(&name);
            }
            WatchedId::Backend(kind) => {
                self.observed.objects.backend_gone(kind);
                self.note_freshness();
            }
            WatchedId::Budget(key) => self.budget_gone(&key),
            WatchedId::Service(service) => self.service_gone(&service),
            WatchedId::Owner { namespace, owner } => self.owner_gone(namespace, owner),
            WatchedId::DeviceClass(class) => self.device_class_gone(&class),
        }
    }
}

impl Event {
    pub fn seen(watched: impl Into<Watched>) -> Self {
        Self::Seen(watched.into())
    }

    pub fn gone(id: impl Into<WatchedId>) -> Self {
        Self::Gone(id.into())
    }
}

/// Types that show which kind they are of.
macro_rules! shows_its_kind {
    ($($of:ident::$kind:ident($type:ty)),+ $(,)?) => {
        $(impl From<$type> for $of {
            fn from(it: $type) -> Self {
                Self::$kind(it)
            }
        })+
    };
}

shows_its_kind!(
    Watched::Node(ClusterNode),
    Watched::Pod(Pod),
    Watched::Object(Reservable),
    Watched::Budget(PodDisruptionBudget),
    WatchedId::Node(NodeName),
    WatchedId::Pod(PodUid),
    WatchedId::Object(ObjectRef),
);
