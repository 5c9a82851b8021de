//! Nodes and Pods with everything that the rules of kube-scheduler look at.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{
    Deletion, FeatureNames, HostPort, LabelSelector, Labels, Node, NodeAffinity, NodeImage,
    NodeName, ObjectKey, PodAffinity, PodRequests, PodUid, PreemptionPolicy, Toleration,
    TopologySpreadConstraint,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    pub node: Node,
    pub images: Vec<NodeImage>,
    /// `status.declaredFeatures`.
    pub declared_features: FeatureNames,
}

impl ClusterNode {
    pub fn new(node: Node) -> Self {
        Self { node, images: Vec::new(), declared_features: FeatureNames::new() }
    }
}

/// A Pod that has not ended: on a Node, or waiting for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPod {
    pub key: ObjectKey,
    pub uid: PodUid,
    pub labels: Labels,
    /// `spec.nodeName`.
    pub node: Option<NodeName>,
    /// `status.nominatedNodeName` of a Pod that waits.
    pub nominated_node: Option<NodeName>,
    pub priority: i32,
    pub preemption_policy: PreemptionPolicy,
    /// `status.startTime`; `None` until the kubelet has seen the Pod.
    pub started_at_unix_s: Option<i64>,
    pub deletion: Deletion,
    pub requests: PodRequests,
    pub tolerations: Vec<Toleration>,
    pub node_selector: Labels,
    pub node_affinity: NodeAffinity,
    pub pod_affinity: PodAffinity,
    pub topology_spread: Vec<TopologySpreadConstraint>,
    /// The selector of the ReplicationController, ReplicaSet or StatefulSet that controls the
    /// Pod: default spreading counts the Pods of the same owner. `Nothing` without one.
    pub owner_selector: LabelSelector,
    /// Of containers and sidecars; other init containers do not keep theirs.
    pub host_ports: Vec<HostPort>,
    /// By their listed names (see [`crate::listed_image_name`]), one for each container, init
    /// container and image volume.
    pub images: Vec<Arc<str>>,
    /// Containers and init containers.
    pub containers: u32,
    pub required_features: FeatureNames,
}

impl ClusterPod {
    /// A Pod that asks for nothing and waits.
    pub fn new(key: ObjectKey, uid: PodUid) -> Self {
        Self {
            key,
            uid,
            labels: Labels::new(),
            node: None,
            nominated_node: None,
            priority: 0,
            preemption_policy: PreemptionPolicy::default(),
            started_at_unix_s: None,
            deletion: Deletion::default(),
            requests: PodRequests::default(),
            tolerations: Vec::new(),
            node_selector: Labels::new(),
            node_affinity: NodeAffinity::default(),
            pod_affinity: PodAffinity::default(),
            topology_spread: Vec::new(),
            owner_selector: LabelSelector::Nothing,
            host_ports: Vec::new(),
            images: Vec::new(),
            containers: 1,
            required_features: BTreeSet::new(),
        }
    }

    pub fn namespace(&self) -> &Arc<str> {
        &self.key.namespace
    }

    /// `nodeSelector` and the required node affinity.
    pub fn accepts(&self, node: &Node) -> bool {
        let required = self.node_affinity.required.as_ref();
        node.matches(&self.node_selector)
            && required.is_none_or(|selector| selector.matches(&node.name, &node.labels))
    }

    pub fn tolerates_taints_of(&self, node: &Node) -> bool {
        crate::first_untolerated(&node.taints, &self.tolerations).is_none()
    }
}
