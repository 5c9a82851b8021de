//! The state that a decision depends on, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use model::{
    ClusterNode, ClusterPod, LabelSelector, NodeName, ObjectKey, Owner, OwnerKind, PodUid,
};
use smallvec::SmallVec;

use crate::assumed_volumes::AssumedVolumes;
use crate::device_state::DeviceState;
use crate::devices::{AllocatorInput, STEPS_MAX};
use crate::plugins::{ClusterObject, ClusterObjectChange, ClusterObjectId, ClusterObjects};
use crate::volume_index::VolumeIndex;

/// Pods by their UID. For looking them up; the order says nothing.
pub type ByUid = HashMap<PodUid, Arc<ClusterPod>, FixedState>;

/// A cluster at one moment. Maps and sorted lists: no decision can depend on the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pub nodes: BTreeMap<NodeName, ClusterNode>,
    pods: ByUid,
    /// The same Pods by the Node that they are on, which need not exist, in the order of their UIDs.
    on_node: HashMap<NodeName, OnNode, FixedState>,
    /// The same Pods, those that wait and are nominated for a Node, by that.
    nominated: BTreeMap<NodeName, BTreeMap<PodUid, Arc<ClusterPod>>>,
    /// The same Pods, those on Nodes that keep others away: they concern every Pod that is decided.
    keeping_away: BTreeMap<PodUid, Arc<ClusterPod>>,
    /// To be changed by [`Cluster::insert_object`] and [`Cluster::remove_object`] where volumes or devices are concerned.
    pub objects: ClusterObjects,
    pub(crate) volume_index: VolumeIndex,
    /// What the Pods that are placed but not bound yet have taken of volumes.
    pub assumed_volumes: AssumedVolumes,
    pub devices: DeviceState,
}

/// The Pods on one Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OnNode {
    /// The first few need no memory of their own: most Nodes get their Pods one by one.
    pods: SmallVec<[Listed; 4]>,
    usage: NodeUsage,
}

/// A Pod in the order of UIDs. Their beginnings tell almost all of them apart: the Pods themselves are not read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    uid_begins: [u8; 8],
    pod: Arc<ClusterPod>,
}

impl Listed {
    fn new(pod: Arc<ClusterPod>) -> Self {
        let mut uid_begins = [0; 8];
        for (to, from) in uid_begins.iter_mut().zip(pod.uid.as_str().bytes()) {
            *to = from;
        }
        Self { uid_begins, pod }
    }

    fn is_before(&self, other: &Self) -> bool {
        let by_beginning = self.uid_begins.cmp(&other.uid_begins);
        by_beginning.then_with(|| self.pod.uid.cmp(&other.pod.uid)).is_lt()
    }
}

/// What the Pods on a Node hold together, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeUsage {
    pub pods: i64,
    pub cpu_milli: i128,
    pub memory_bytes: i128,
}

impl NodeUsage {
    fn count(&mut self, pod: &ClusterPod, sign: i8) {
        let requests = &pod.requests.effective;
        self.pods += i64::from(sign);
        self.cpu_milli += i128::from(requests.cpu_milli) * i128::from(sign);
        self.memory_bytes += i128::from(requests.memory_bytes) * i128::from(sign);
    }
}

impl Cluster {
    /// The part that is not derived from the Pods. Without `..`: a new field is part of it, or derived.
    pub fn without_pods(&self) -> (&BTreeMap<NodeName, ClusterNode>, &ClusterObjects) {
        let Self {
            nodes,
            pods: _,
            on_node: _,
            nominated: _,
            keeping_away: _,
            objects,
            volume_index: _,
            assumed_volumes: _,
            devices: _,
        } = self;
        (nodes, objects)
    }

    /// Returns the change, if this was not known.
    pub fn insert_object(&mut self, object: ClusterObject) -> Option<ClusterObjectChange> {
        let change = self.objects.insert(object)?;
        self.volume_index.follow(&change);
        self.devices.follow(&change);
        Some(change)
    }

    /// Returns the change, if there was such an object.
    pub fn remove_object(&mut self, id: &ClusterObjectId) -> Option<ClusterObjectChange> {
        let change = self.objects.remove(id)?;
        self.volume_index.follow(&change);
        self.devices.follow(&change);
        Some(change)
    }

    pub(crate) fn allocator_input(&self) -> AllocatorInput<'_> {
        let DeviceState { pools, taken, verdicts, .. } = &self.devices;
        let classes = &self.objects.device_classes;
        AllocatorInput { pools, classes, selectors: verdicts, taken, step_limit: STEPS_MAX }
    }

    /// To be called on a cluster without objects.
    pub fn insert_objects(&mut self, objects: ClusterObjects) {
        for object in objects.into_each() {
            self.insert_object(object);
        }
    }

    pub fn new(
        nodes: impl IntoIterator<Item = ClusterNode>,
        pods: impl IntoIterator<Item = ClusterPod>,
    ) -> Self {
        let nodes = nodes.into_iter().map(|node| (node.node.name.clone(), node)).collect();
        let mut cluster = Self { nodes, ..Self::default() };
        for pod in pods {
            cluster.insert_pod(pod);
        }
        cluster
    }

    /// Every Pod that has not ended and is on a Node, bound by any scheduler. Of the Pods that
    /// wait, those whose nomination is to be respected; the others change nothing.
    pub fn pods(&self) -> &ByUid {
        &self.pods
    }

    /// Puts the Pod where it says, and no longer where it was. Returns it as it was.
    pub fn insert_pod(&mut self, pod: impl Into<Arc<ClusterPod>>) -> Option<Arc<ClusterPod>> {
        let pod = pod.into();
        let before = self.pods.insert(pod.uid.clone(), pod.clone());
        if let Some(before) = &before {
            self.leave(before);
        }
        if pod.node.is_some() && !pod.pod_affinity.anti_required.is_empty() {
            self.keeping_away.insert(pod.uid.clone(), pod.clone());
        }
        if let Some(node) = &pod.node {
            self.volume_index.pod(&pod, true);
            let on_node = self.on_node.entry_ref(node).or_default();
            on_node.usage.count(&pod, 1);
            let listed = Listed::new(pod);
            let place = on_node.pods.partition_point(|other| other.is_before(&listed));
            on_node.pods.insert(place, listed);
        } else if let Some(node) = &pod.nominated_node {
            self.nominated.entry(node.clone()).or_default().insert(pod.uid.clone(), pod.clone());
        }
        before
    }

    pub fn remove_pod(&mut self, uid: &PodUid) -> Option<Arc<ClusterPod>> {
        let pod = self.pods.remove(uid)?;
        self.leave(&pod);
        Some(pod)
    }

    /// The Pod is no longer where it was.
    fn leave(&mut self, pod: &Arc<ClusterPod>) {
        if !pod.pod_affinity.anti_required.is_empty() {
            self.keeping_away.remove(&pod.uid);
        }
        let Some(node) = &pod.node else {
            self.forget_nominated(pod);
            return;
        };
        self.volume_index.pod(pod, false);
        if let Some(on_node) = self.on_node.get_mut(node) {
            on_node.pods.retain(|other| !Arc::ptr_eq(&other.pod, pod));
            on_node.usage.count(pod, -1);
            if on_node.pods.is_empty() {
                self.on_node.remove(node);
            }
        }
    }

    fn forget_nominated(&mut self, pod: &ClusterPod) {
        let Some(node) = &pod.nominated_node else { return };
        let Some(nominated) = self.nominated.get_mut(node) else { return };
        nominated.remove(&pod.uid);
        if nominated.is_empty() {
            self.nominated.remove(node);
        }
    }

    /// Pods with the Nodes they are on. A Pod on a Node that is gone counts nowhere.
    pub fn placed(&self) -> impl Iterator<Item = (&ClusterPod, &ClusterNode)> {
        let on_nodes =
            self.nodes.iter().filter_map(|(name, node)| Some((node, self.on_node.get(name)?)));
        on_nodes.flat_map(|(node, on_node)| on_node.pods.iter().map(move |it| (&*it.pod, node)))
    }

    /// The same for those that keep others away.
    pub(crate) fn keeping_away(&self) -> impl Iterator<Item = (&ClusterPod, &ClusterNode)> {
        let pods = self.keeping_away.values();
        pods.filter_map(|pod| Some((&**pod, self.nodes.get(pod.node.as_ref()?)?)))
    }

    /// The Pods on Nodes that exist that use the claim.
    pub(crate) fn users<'a>(&'a self, claim: &ObjectKey) -> impl Iterator<Item = &'a ClusterPod> {
        let pods = self.volume_index.users(claim).filter_map(|uid| self.pods.get(uid));
        let is_there = |node: &NodeName| self.nodes.contains_key(node);
        pods.filter(move |pod| pod.node.as_ref().is_some_and(is_there)).map(|pod| &**pod)
    }

    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &ClusterPod> {
        self.on_node.get(node).into_iter().flat_map(|it| &it.pods).map(|it| &*it.pod)
    }

    /// What the Pods on the Node hold together.
    pub fn usage_on(&self, node: &NodeName) -> NodeUsage {
        self.on_node.get(node).map_or(NodeUsage::default(), |it| it.usage)
    }

    /// Waiting Pods that are nominated for the Node.
    pub fn nominated(&self, node: &NodeName) -> impl Iterator<Item = &ClusterPod> {
        self.nominated.get(node).into_iter().flat_map(BTreeMap::values).map(|pod| &**pod)
    }

    /// Waiting Pods that are nominated for the Node and that `pod` must not push aside.
    pub(crate) fn nominated_before<'a>(
        &'a self,
        pod: &'a ClusterPod,
        node: &'a NodeName,
    ) -> impl Iterator<Item = &'a ClusterPod> {
        let nominated = self.nominated(node);
        nominated.filter(|other| other.priority >= pod.priority && other.uid != pod.uid)
    }

    /// The Pods beside which default spreading places a Pod: those of its Services and its owner.
    pub fn siblings_of(&self, pod: &ClusterPod) -> LabelSelector {
        let services = self.objects.services.iter();
        let services = services.filter(|(key, selector)| {
            key.namespace == *pod.namespace() && selector.matches(&pod.labels)
        });
        let owner = pod.owner.as_ref().and_then(|owner| self.selector_of(pod.namespace(), owner));
        let mut requirements = Vec::new();
        for selector in services.map(|(_, selector)| selector).chain(owner) {
            if let LabelSelector::All(more) = selector {
                requirements.extend(more.iter().cloned());
            }
        }
        LabelSelector::All(requirements)
    }

    fn selector_of(&self, namespace: &Arc<str>, owner: &Owner) -> Option<&LabelSelector> {
        let of_kind = match owner.kind {
            OwnerKind::ReplicationController => &self.objects.replication_controllers,
            OwnerKind::ReplicaSet => &self.objects.replica_sets,
            OwnerKind::StatefulSet => &self.objects.stateful_sets,
        };
        of_kind.get(&ObjectKey { namespace: namespace.clone(), name: owner.name.clone() })
    }

    /// The selectors by which default spreading tells Pods apart: those of Services and controllers.
    pub fn spreading_selectors(&self) -> impl Iterator<Item = &LabelSelector> {
        let ClusterObjects {
            services, replication_controllers, replica_sets, stateful_sets, ..
        } = &self.objects;
        [services, replication_controllers, replica_sets, stateful_sets]
            .into_iter()
            .flat_map(BTreeMap::values)
    }
}
