use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, NodeName, ObjectRef, PodSpec, PodUid, SchedulingSpec};
use rules::{Chances, Prospect};

use super::Order;

/// Pods that fit on no Node, grouped so that a change is judged once for each kind of Pod, not
/// for each Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Parked {
    #[serde(with = "crate::written::pairs")]
    groups: BTreeMap<ParkKey, Group>,
    /// By the kind as one that was promised nothing.
    #[serde(with = "crate::written::pairs")]
    common: BTreeMap<ParkKey, Common>,
    /// Those that were promised a Node, by that.
    #[serde(skip)]
    by_promise: BTreeMap<NodeName, BTreeSet<ParkKey>>,
}

/// Pods with the same key fit on the same Nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkKey {
    pub profile: Arc<str>,
    pub namespace: Arc<str>,
    pub scheduling: Arc<SchedulingSpec>,
    pub objects: Vec<ObjectRef>,
    /// A Pod that was promised a Node is a kind of its own: the promise is its alone.
    pub nominated: Option<(NodeName, PodUid)>,
}

impl Ord for ParkKey {
    /// By one field after the other. Those that are known share memory: then nothing in it is compared.
    fn cmp(&self, other: &Self) -> Ordering {
        fn shared<T: Ord + ?Sized>(one: &Arc<T>, other: &Arc<T>) -> Ordering {
            if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.cmp(other) }
        }
        let Self { profile, namespace, scheduling, objects, nominated } = self;
        shared(profile, &other.profile)
            .then_with(|| shared(namespace, &other.namespace))
            .then_with(|| shared(scheduling, &other.scheduling))
            .then_with(|| objects.cmp(&other.objects))
            .then_with(|| nominated.cmp(&other.nominated))
    }
}

impl PartialOrd for ParkKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ParkKey {
    /// Of a Pod that was promised no Node.
    pub fn of(spec: &PodSpec) -> Self {
        Self {
            profile: spec.profile.clone(),
            namespace: spec.namespace.clone(),
            scheduling: spec.scheduling.clone(),
            objects: spec.needs.iter().map(|need| need.object.clone()).collect(),
            nominated: None,
        }
    }

    /// The same without the promise.
    pub fn plain(&self) -> Self {
        Self { nominated: None, ..self.clone() }
    }

    /// The Pod as the rules see it, but for what it refers to.
    pub fn as_pod(&self) -> ClusterPod {
        let mut pod = ClusterPod::with_scheduling(self.namespace.clone(), self.scheduling.clone());
        if let Some((node, uid)) = &self.nominated {
            pod.uid.clone_from(uid);
            pod.nominated_node = Some(node.clone());
        }
        pod
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Group {
    #[serde(with = "crate::written::pairs")]
    pub pods: BTreeMap<Order, PodUid>,
    /// Of a kind that was promised a Node: what it has there, as of the last change of the cluster.
    pub prospect: Prospect,
    /// The one that was woken and has not been tried yet. The next follows if it leaves room.
    pub awake: Option<PodUid>,
}

/// What all have in common who ask for the same, whatever they were promised.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Common {
    /// As of the last change of the cluster. At the Node that one of them was promised, it has its own.
    pub chances: Chances,
    /// Those that were promised a Node, by that.
    #[serde(with = "crate::written::pairs")]
    promised: BTreeMap<NodeName, BTreeSet<PodUid>>,
    groups: usize,
}

impl Parked {
    pub fn has_common(&self, key: &ParkKey) -> bool {
        self.common.contains_key(&key.plain())
    }

    pub fn has(&self, key: &ParkKey) -> bool {
        self.groups.contains_key(key)
    }

    /// The chances are those of a new sort; one that is known has kept its own up to date. So with the prospect. Returns
    /// whether it is a new sort.
    pub fn insert(
        &mut self,
        key: ParkKey,
        order: Order,
        pod: PodUid,
        new: (Chances, Prospect),
    ) -> bool {
        let sorts = self.common.len();
        let (chances, prospect) = new;
        if !self.has(&key) {
            let fresh = || Common { chances, ..Common::default() };
            let common = self.common.entry(key.plain()).or_insert_with(fresh);
            common.groups += 1;
            if let Some((node, pod)) = key.nominated.clone() {
                self.by_promise.entry(node.clone()).or_default().insert(key.clone());
                common.promised.entry(node).or_default().insert(pod);
            }
        }
        let new = || Group { prospect, ..Group::default() };
        self.groups.entry(key).or_insert_with(new).pods.insert(order, pod);
        self.common.len() > sorts
    }

    /// Returns whether it was the last of its sort.
    pub fn remove(&mut self, key: &ParkKey, order: Order) -> bool {
        let Some(group) = self.groups.get_mut(key) else { return false };
        group.pods.remove(&order);
        if !group.pods.is_empty() {
            return false;
        }
        self.groups.remove(key);
        if let Some((node, _)) = &key.nominated
            && let Some(keys) = self.by_promise.get_mut(node)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_promise.remove(node);
            }
        }
        let plain = key.plain();
        let Some(common) = self.common.get_mut(&plain) else { return false };
        common.groups -= 1;
        if let Some((node, pod)) = &key.nominated
            && let Some(pods) = common.promised.get_mut(node)
        {
            pods.remove(pod);
            if pods.is_empty() {
                common.promised.remove(node);
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

    /// Each sort of Pod that waits, as one that was promised nothing.
    pub fn sorts(&self) -> impl Iterator<Item = &ParkKey> {
        self.common.keys()
    }

    /// The next of them, in their order.
    pub fn sorts_after(&self, last: Option<&ParkKey>, most: usize) -> Vec<ParkKey> {
        let start = last.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.common.range::<ParkKey, _>((start, Bound::Unbounded));
        rest.map(|(sort, _)| sort.clone()).take(most).collect()
    }

    /// All Pods of a sort, with the kinds as which they are parked.
    pub fn of_sort(&self, sort: &ParkKey) -> Vec<(ParkKey, Order, PodUid)> {
        let mut found = Vec::new();
        for key in std::iter::once(sort.clone()).chain(self.promised(sort, None)) {
            let pods = self.groups.get(&key).into_iter().flat_map(|group| &group.pods);
            found.extend(pods.map(|(order, pod)| (key.clone(), *order, pod.clone())));
        }
        found
    }

    /// What a kind knows: whoever becomes a kind of its own begins with that.
    pub fn known_of(&self, key: &ParkKey) -> (Chances, Prospect) {
        let chances = self.chances(&key.plain()).cloned().unwrap_or_default();
        (chances, self.group(key).map(|group| group.prospect).unwrap_or_default())
    }

    pub fn chances(&self, sort: &ParkKey) -> Option<&Chances> {
        self.common.get(sort).map(|common| &common.chances)
    }

    pub fn chances_mut(&mut self, sort: &ParkKey) -> Option<&mut Chances> {
        self.common.get_mut(sort).map(|common| &mut common.chances)
    }

    /// Those of the sort that were promised one of these Nodes, or any.
    pub fn promised(&self, sort: &ParkKey, nodes: Option<&BTreeSet<NodeName>>) -> Vec<ParkKey> {
        let Some(common) = self.common.get(sort) else { return Vec::new() };
        let key = |node: &NodeName, pod: &PodUid| ParkKey {
            nominated: Some((node.clone(), pod.clone())),
            ..sort.clone()
        };
        let keys = |(node, pods): (&NodeName, &BTreeSet<PodUid>)| {
            pods.iter().map(|pod| key(node, pod)).collect::<Vec<_>>()
        };
        match nodes {
            None => common.promised.iter().flat_map(keys).collect(),
            Some(nodes) => {
                let here = nodes.iter().filter_map(|node| common.promised.get_key_value(node));
                here.flat_map(keys).collect()
            }
        }
    }

    /// The sorts of those that were promised the Node.
    pub fn promised_on(&self, node: &NodeName) -> impl Iterator<Item = ParkKey> {
        self.by_promise.get(node).into_iter().flatten().map(ParkKey::plain)
    }

    /// Finds out again what is not written.
    pub fn know_promises(&mut self) {
        for key in self.groups.keys() {
            if let Some((node, _)) = &key.nominated {
                self.by_promise.entry(node.clone()).or_default().insert(key.clone());
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
