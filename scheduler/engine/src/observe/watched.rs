//! The watched kinds: what an event shows of an object of each, and what the engine does with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{ClusterNode, NodeName, ObjectKey, ObjectKind, ObjectRef, Pod, PodUid, Reservable};
use rules::{ClusterObject, ClusterObjectId, ClusterObjectKind};
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
    /// The Leases of the daemons behind objects: how long ago one was renewed, as of the event.
    Backends,
    /// What plugins read besides Nodes and Pods.
    Cluster(ClusterObjectKind),
}

impl WatchedKind {
    const OWN: [Self; 6] = [
        Self::Nodes,
        Self::Pods,
        Self::Objects(ObjectKind::Corridor),
        Self::Objects(ObjectKind::MemoryBundle),
        Self::Policies,
        Self::Backends,
    ];

    pub const ALL: [Self; Self::OWN.len() + ClusterObjectKind::ALL.len()] = {
        let mut all = [Self::Nodes; _];
        let mut at = 0;
        while at < all.len() {
            all[at] = match at.checked_sub(Self::OWN.len()) {
                None => Self::OWN[at],
                Some(of_cluster) => Self::Cluster(ClusterObjectKind::ALL[of_cluster]),
            };
            at += 1;
        }
        all
    };
}

/// A watched object, as far as the engine looks at it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Watched {
    Node(ClusterNode),
    Pod(Pod),
    Object(Reservable),
    Policy { policy: ObjectKey, allowed_tenants: BTreeSet<Arc<str>> },
    Backend { kind: ObjectKind, age: Duration },
    ClusterObject(ClusterObject),
}

/// What a watched object is known by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WatchedId {
    Node(NodeName),
    Pod(PodUid),
    Object(ObjectRef),
    Policy(ObjectKey),
    Backend(ObjectKind),
    ClusterObject(ClusterObjectId),
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
            Watched::Backend { kind, age } => self.backend_seen(kind, age),
            Watched::ClusterObject(object) => self.cluster_object_seen(object),
        }
    }

    pub(super) fn gone(&mut self, id: WatchedId) {
        match id {
            WatchedId::Node(name) => self.node_gone(&name),
            WatchedId::Pod(uid) => self.pod_gone(&uid),
            WatchedId::Object(object) => {
                self.observed.objects.remove(&object);
                self.recheck_nominations_needing(|needed| *needed == object);
                self.outbox.uses.forget(&object);
                self.report_waiting_for(&object);
            }
            WatchedId::Policy(policy) => {
                self.observed.objects.policy_gone(&policy);
                self.policy_changed(&policy.namespace);
            }
            WatchedId::Backend(kind) => {
                self.observed.objects.backend_gone(kind);
                self.note_freshness();
            }
            WatchedId::ClusterObject(id) => self.cluster_object_gone(&id),
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
    Watched::ClusterObject(ClusterObject),
    WatchedId::Node(NodeName),
    WatchedId::Pod(PodUid),
    WatchedId::Object(ObjectRef),
    WatchedId::ClusterObject(ClusterObjectId),
);
