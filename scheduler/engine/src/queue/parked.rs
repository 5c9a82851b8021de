//! Pods that fit on no Node, by class: those that every Node judges alike.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{
    ClusterPod, NodeName, ObjectRef, Pod, PodClaim, PodSpec, PodUid, PodVolume, SchedulingSpec,
};
use rules::{Chances, Prospect};

use super::Order;

/// Pods that fit on no Node, grouped so that a change is judged once for each class of Pod, not
/// for each Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Parked {
    #[serde(with = "model::pairs")]
    groups: BTreeMap<ParkKey, Group>,
    /// By the class as one that is not nominated.
    #[serde(with = "model::pairs")]
    common: BTreeMap<ParkKey, Common>,
    /// Those that are nominated for a Node, by that.
    #[serde(skip)]
    by_nominated_node: BTreeMap<NodeName, BTreeSet<ParkKey>>,
}

/// Pods with the same key fit on the same Nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkKey {
    pub profile: Arc<str>,
    pub namespace: Arc<str>,
    pub scheduling: Arc<SchedulingSpec>,
    pub objects: Vec<ObjectRef>,
    #[serde(default)]
    pub volumes: Arc<[PodVolume]>,
    #[serde(default)]
    pub resource_claims: Arc<[PodClaim]>,
    /// Of a Pod with claims that must be its own, its name and UID.
    #[serde(default)]
    pub owner: Option<(Arc<str>, PodUid)>,
    /// A nominated Pod is a class of its own: only it can use its nomination.
    pub nominated: Option<(NodeName, PodUid)>,
}

impl Ord for ParkKey {
    /// By one field after the other. Those that are known share memory: then nothing in it is compared.
    fn cmp(&self, other: &Self) -> Ordering {
        fn shared<T: Ord + ?Sized>(one: &Arc<T>, other: &Arc<T>) -> Ordering {
            if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.cmp(other) }
        }
        let Self {
            profile,
            namespace,
            scheduling,
            objects,
            volumes,
            resource_claims,
            owner,
            nominated,
        } = self;
        shared(profile, &other.profile)
            .then_with(|| shared(namespace, &other.namespace))
            .then_with(|| shared(scheduling, &other.scheduling))
            .then_with(|| objects.cmp(&other.objects))
            .then_with(|| shared(volumes, &other.volumes))
            .then_with(|| shared(resource_claims, &other.resource_claims))
            .then_with(|| owner.cmp(&other.owner))
            .then_with(|| nominated.cmp(&other.nominated))
    }
}

impl PartialOrd for ParkKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ParkKey {
    /// Of a Pod that is nominated for no Node.
    pub fn of(spec: &PodSpec) -> Self {
        Self {
            profile: spec.profile.clone(),
            namespace: spec.namespace.clone(),
            scheduling: spec.scheduling.clone(),
            objects: spec.needs.iter().map(|need| need.object.clone()).collect(),
            volumes: spec.volumes.clone(),
            resource_claims: spec.resource_claims.clone(),
            owner: None,
            nominated: None,
        }
    }

    pub fn of_pod(pod: &Pod) -> Self {
        let PodSpec { volumes, resource_claims, .. } = &*pod.spec;
        let is_ephemeral = |volume: &PodVolume| matches!(volume, PodVolume::Ephemeral(_));
        let has_own = volumes.iter().any(is_ephemeral) || !resource_claims.is_empty();
        let owner = has_own.then(|| (pod.key.name.clone(), pod.uid.clone()));
        Self { owner, ..Self::of(&pod.spec) }
    }

    /// Whether it has any, of volumes or of devices.
    pub fn has_claims(&self) -> bool {
        !self.volumes.is_empty() || !self.resource_claims.is_empty()
    }

    /// The same without the nomination.
    pub fn plain(&self) -> Self {
        Self { nominated: None, ..self.clone() }
    }

    /// The Pod as the rules see it, but for what it refers to.
    pub fn as_pod(&self) -> ClusterPod {
        let mut pod = ClusterPod::with_scheduling(self.namespace.clone(), self.scheduling.clone());
        pod.volumes.clone_from(&self.volumes);
        pod.resource_claims.clone_from(&self.resource_claims);
        if let Some((name, uid)) = &self.owner {
            pod.key.name.clone_from(name);
            pod.uid.clone_from(uid);
        }
        if let Some((node, uid)) = &self.nominated {
            pod.uid.clone_from(uid);
            pod.nominated_node = Some(node.clone());
        }
        pod
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Group {
    #[serde(with = "model::pairs")]
    pub pods: BTreeMap<Order, PodUid>,
    /// Of a class that is nominated for a Node: what it has there, as of the last change of the cluster.
    pub prospect: Prospect,
    /// The one that was woken and has not been tried yet. The next follows if it leaves room.
    pub awake: Option<PodUid>,
}

/// What Pods of one class share, whatever their nominations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Common {
    /// As of the last change of the cluster. A nominated Pod has its own result at its nominated Node.
    pub chances: Chances,
    /// Those that are nominated for a Node, by that.
    #[serde(with = "model::pairs")]
    nominated: BTreeMap<NodeName, BTreeSet<PodUid>>,
    groups: usize,
}

impl Parked {
    pub fn has_common(&self, key: &ParkKey) -> bool {
        self.common.contains_key(&key.plain())
    }

    pub fn has(&self, key: &ParkKey) -> bool {
        self.groups.contains_key(key)
    }

    /// The chances are those of a new class; one that is known has kept its own up to date. So with the prospect. Returns
    /// whether it is a new class.
    pub fn insert(
        &mut self,
        key: ParkKey,
        order: Order,
        pod: PodUid,
        new: (Chances, Prospect),
    ) -> bool {
        let classes = self.common.len();
        let (chances, prospect) = new;
        if !self.has(&key) {
            let fresh = || Common { chances, ..Common::default() };
            let common = self.common.entry(key.plain()).or_insert_with(fresh);
            common.groups += 1;
            if let Some((node, pod)) = key.nominated.clone() {
                self.by_nominated_node.entry(node.clone()).or_default().insert(key.clone());
                common.nominated.entry(node).or_default().insert(pod);
            }
        }
        let new = || Group { prospect, ..Group::default() };
        self.groups.entry(key).or_insert_with(new).pods.insert(order, pod);
        self.common.len() > classes
    }

    /// Returns whether it was the last of its class.
    pub fn remove(&mut self, key: &ParkKey, order: Order) -> bool {
        let Some(group) = self.groups.get_mut(key) else { return false };
        group.pods.remove(&order);
        if !group.pods.is_empty() {
            return false;
        }
        self.groups.remove(key);
        if let Some((node, _)) = &key.nominated
            && let Some(keys) = self.by_nominated_node.get_mut(node)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_nominated_node.remove(node);
            }
        }
        let plain = key.plain();
        let Some(common) = self.common.get_mut(&plain) else { return false };
        common.groups -= 1;
        if let Some((node, pod)) = &key.nominated
            && let Some(pods) = common.nominated.get_mut(node)
        {
            pods.remove(pod);
            if pods.is_empty() {
                common.nominated.remove(node);
            }
        }
        if common.groups > 0 {
            return false;
        }
        self.common.remove(&plain);
        true
    }

    /// The same key, sharing memory with those that are known.
    pub fn shared(&self, key: ParkKey) -> ParkKey {
        match self.common.get_key_value(&key.plain()) {
            Some((known, _)) => ParkKey { nominated: key.nominated, ..known.clone() },
            None => key,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Each class of Pod that waits, as one that is not nominated.
    pub fn classes(&self) -> impl Iterator<Item = &ParkKey> {
        self.common.keys()
    }

    /// The next of them, in their order.
    pub fn classes_after(&self, last: Option<&ParkKey>, most: usize) -> Vec<ParkKey> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.common.range::<ParkKey, _>((start, Bound::Unbounded));
        rest.map(|(class, _)| class.clone()).take(most).collect()
    }

    /// All Pods of a class, with the classes as which they are parked.
    pub fn of_class(&self, class: &ParkKey) -> Vec<(ParkKey, Order, PodUid)> {
        let mut found = Vec::new();
        for key in std::iter::once(class.clone()).chain(self.nominated(class, None)) {
            let pods = self.groups.get(&key).into_iter().flat_map(|group| &group.pods);
            found.extend(pods.map(|(order, pod)| (key.clone(), *order, pod.clone())));
        }
        found
    }

    /// What is known of a class: a class that splits off begins with that.
    pub fn known_of(&self, key: &ParkKey) -> (Chances, Prospect) {
        let chances = self.chances(&key.plain()).cloned().unwrap_or_default();
        (chances, self.group(key).map(|group| group.prospect).unwrap_or_default())
    }

    pub fn chances(&self, class: &ParkKey) -> Option<&Chances> {
        self.common.get(class).map(|common| &common.chances)
    }

    pub fn chances_mut(&mut self, class: &ParkKey) -> Option<&mut Chances> {
        self.common.get_mut(class).map(|common| &mut common.chances)
    }

    /// Those of the class that are nominated for one of these Nodes, or for any.
    pub fn nominated(&self, class: &ParkKey, nodes: Option<&BTreeSet<NodeName>>) -> Vec<ParkKey> {
        let Some(common) = self.common.get(class) else { return Vec::new() };
        let key = |node: &NodeName, pod: &PodUid| ParkKey {
            nominated: Some((node.clone(), pod.clone())),
            ..class.clone()
        };
        let keys = |(node, pods): (&NodeName, &BTreeSet<PodUid>)| {
            pods.iter().map(|pod| key(node, pod)).collect::<Vec<_>>()
        };
        match nodes {
            None => common.nominated.iter().flat_map(keys).collect(),
            Some(nodes) => {
                let here = nodes.iter().filter_map(|node| common.nominated.get_key_value(node));
                here.flat_map(keys).collect()
            }
        }
    }

    /// The classes of Pods that are nominated for the Node.
    pub fn nominated_on(&self, node: &NodeName) -> impl Iterator<Item = ParkKey> {
        self.by_nominated_node.get(node).into_iter().flatten().map(ParkKey::plain)
    }

    /// Finds out again what is not written.
    pub fn rebuild_nominated(&mut self) {
        for key in self.groups.keys() {
            if let Some((node, _)) = &key.nominated {
                self.by_nominated_node.entry(node.clone()).or_default().insert(key.clone());
            }
        }
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
