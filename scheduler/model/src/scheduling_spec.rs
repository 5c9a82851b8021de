//! What a Pod asks of Nodes and of the Pods around it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    FeatureNames, HostPort, Labels, Node, NodeAffinity, ObjectRef, PodAffinity, PodRequests,
    PreemptionPolicy, Toleration, TopologySpreadConstraint,
};

/// Everything in a Pod that bears on where it can go. Pods of one namespace and one such spec fit on
/// the same Nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulingSpec {
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    #[serde(skip_serializing_if = "is_default")]
    pub priority: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub preemption_policy: PreemptionPolicy,
    #[serde(skip_serializing_if = "is_default")]
    pub requests: PodRequests,
    #[serde(skip_serializing_if = "is_default")]
    pub tolerations: Vec<Toleration>,
    #[serde(skip_serializing_if = "is_default")]
    pub node_selector: Labels,
    #[serde(skip_serializing_if = "is_default")]
    pub node_affinity: NodeAffinity,
    #[serde(skip_serializing_if = "is_default")]
    pub pod_affinity: PodAffinity,
    #[serde(skip_serializing_if = "is_default")]
    pub topology_spread: Vec<TopologySpreadConstraint>,
    /// The controller of the Pod, if it is of a kind whose Pods are spread by default.
    #[serde(skip_serializing_if = "is_default")]
    pub owner: Option<Owner>,
    /// Of containers and sidecars; other init containers do not keep theirs.
    #[serde(skip_serializing_if = "is_default")]
    pub host_ports: Vec<HostPort>,
    /// By their listed names (see [`crate::listed_image_name`]), one for each container, init
    /// container and image volume.
    #[serde(skip_serializing_if = "is_default")]
    pub images: Vec<Arc<str>>,
    /// Containers and init containers.
    #[serde(skip_serializing_if = "is_default")]
    pub containers: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub required_features: FeatureNames,
}

/// Most Pods ask for little: what they do not ask for is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl SchedulingSpec {
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    pub kind: OwnerKind,
    pub name: Arc<str>,
}

/// The controllers whose Pods kube-scheduler spreads when they say nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OwnerKind {
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

impl OwnerKind {
    pub const ALL: [Self; 3] = [Self::ReplicationController, Self::ReplicaSet, Self::StatefulSet];
}

/// The Nodes at which an object that the Pod refers to can be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reach {
    pub object: ObjectRef,
    pub node_selector: Labels,
}
