//! What a Pod asks of Nodes and of the Pods around it.

use std::sync::Arc;

use crate::{
    FeatureNames, HostPort, Labels, Node, NodeAffinity, ObjectRef, PodAffinity, PodRequests,
    PreemptionPolicy, Toleration, TopologySpreadConstraint,
};

/// Everything in a Pod that bears on where it can go. Pods of one namespace and one shape fit on
/// the same Nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    pub labels: Labels,
    pub priority: i32,
    pub preemption_policy: PreemptionPolicy,
    pub requests: PodRequests,
    pub tolerations: Vec<Toleration>,
    pub node_selector: Labels,
    pub node_affinity: NodeAffinity,
    pub pod_affinity: PodAffinity,
    pub topology_spread: Vec<TopologySpreadConstraint>,
    /// Who controls the Pod, if it is of a kind whose Pods are spread by default.
    pub owner: Option<Owner>,
    /// Of containers and sidecars; other init containers do not keep theirs.
    pub host_ports: Vec<HostPort>,
    /// By their listed names (see [`crate::listed_image_name`]), one for each container, init
    /// container and image volume.
    pub images: Vec<Arc<str>>,
    /// Containers and init containers.
    pub containers: u32,
    pub required_features: FeatureNames,
}

impl Shape {
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

/// A controller in the Pod's own namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    pub kind: OwnerKind,
    pub name: Arc<str>,
}

/// The controllers whose Pods kube-scheduler spreads when they say nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

impl OwnerKind {
    pub const ALL: [Self; 3] = [Self::ReplicationController, Self::ReplicaSet, Self::StatefulSet];
}

/// The Nodes at which an object that the Pod refers to can be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach {
    pub object: ObjectRef,
    pub node_selector: Labels,
}
