use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, NodeName, ObjectKey, ObjectRef, PodSpec, PodUid, Shape};
use oracle::Chances;

use super::Order;

/// Pods that fit on no Node, grouped so that a change is judged once for each kind of Pod, not
/// for each Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Parked {
    #[serde(with = "crate::written::pairs")]
    groups: BTreeMap<ParkKey, Group>,
}

/// Pods with the same key fit on the same Nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ParkKey {
    pub profile: Arc<str>,
    pub namespace: Arc<str>,
    pub shape: Arc<Shape>,
    pub objects: Vec<ObjectRef>,
    /// A Pod that was promised a Node is a kind of its own: the promise is its alone.
    pub nominated: Option<(NodeName, PodUid)>,
}

impl ParkKey {
    /// Of a Pod that was promised no Node.
    pub fn of(spec: &PodSpec) -> Self {
        Self {
            profile: spec.profile.clone(),
            namespace: spec.namespace.clone(),
            shape: spec.shape.clone(),
            objects: spec.needs.iter().map(|need| need.object.clone()).collect(),
            nominated: None,
        }
    }

    /// The Pod as the rules see it, but for what it refers to.
    pub fn as_pod(&self) -> ClusterPod {
        let (node, uid) = self.nominated.clone().unzip();
        let key = ObjectKey::new(&self.namespace, "");
        let mut pod = ClusterPod::new(key, uid.unwrap_or_else(|| PodUid::new("")));
        pod.nominated_node = node;
        pod.shape = self.shape.clone();
        pod
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Group {
    #[serde(with = "crate::written::pairs")]
    pub pods: BTreeMap<Order, PodUid>,
    /// As of the last change of the cluster.
    pub chances: Chances,
    /// The one that was woken and has not been tried yet. The next follows if it leaves room.
    pub awake: Option<PodUid>,
}

impl Parked {
    pub fn has(&self, key: &ParkKey) -> bool {
        self.groups.contains_key(key)
    }

    /// The chances are those of a new group; one that is known has kept its own up to date.
    pub fn insert(&mut self, key: ParkKey, order: Order, pod: PodUid, chances: Chances) {
        let new = || Group { chances, ..Group::default() };
        self.groups.entry(key).or_insert_with(new).pods.insert(order, pod);
    }

    pub fn remove(&mut self, key: &ParkKey, order: Order) {
        let Some(group) = self.groups.get_mut(key) else { return };
        group.pods.remove(&order);
        if group.pods.is_empty() {
            self.groups.remove(key);
        }
    }

    /// Each kind of Pod that waits.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = &ParkKey> {
        self.groups.keys()
    }

    pub fn groups(&self) -> impl Iterator<Item = (&ParkKey, &Group)> {
        self.groups.iter()
    }

    pub fn group(&self, key: &ParkKey) -> Option<&Group> {
        self.groups.get(key)
    }

    pub fn group_mut(&mut self, key: &ParkKey) -> Option<&mut Group> {
        self.groups.get_mut(key)
    }
}
