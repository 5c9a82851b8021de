//! Nodes and Pods with everything that the rules of kube-scheduler look at.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Deletion, FeatureNames, Node, NodeImage, NodeName, ObjectKey, PodClaim, PodUid, PodVolume,
    Reach, SchedulingSpec,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNode {
    pub node: Node,
    /// Nodes share what they say of an image: they have many, and most have the same.
    pub images: Arc<[Arc<NodeImage>]>,
    /// `status.declaredFeatures`.
    pub declared_features: FeatureNames,
}

impl ClusterNode {
    pub fn new(node: Node) -> Self {
        Self { node, images: Arc::default(), declared_features: FeatureNames::new() }
    }
}

/// A Pod that has not ended: on a Node, or waiting for one. What it asks for is its [`SchedulingSpec`],
/// which it shares with its equals; the rest is its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPod {
    pub key: ObjectKey,
    pub uid: PodUid,
    /// `spec.nodeName`.
    pub node: Option<NodeName>,
    /// `status.nominatedNodeName` of a Pod that waits.
    pub nominated_node: Option<NodeName>,
    /// `status.startTime`; `None` until the kubelet has seen the Pod.
    pub started_at_unix_s: Option<i64>,
    pub deletion: Deletion,
    pub scheduling: Arc<SchedulingSpec>,
    /// Where the Corridor and the MemoryBundle that it refers to can be used.
    pub reach: Vec<Reach>,
    /// Those that concern where it can go, in the order of `spec.volumes`.
    #[serde(default)]
    pub volumes: Arc<[PodVolume]>,
    /// `spec.resourceClaims`, with the claims that were made of templates.
    #[serde(default)]
    pub resource_claims: Arc<[PodClaim]>,
}

impl ClusterPod {
    /// A Pod that asks for nothing and waits.
    pub fn new(key: ObjectKey, uid: PodUid) -> Self {
        Self {
            key,
            uid,
            node: None,
            nominated_node: None,
            started_at_unix_s: None,
            deletion: Deletion::default(),
            scheduling: Arc::new(SchedulingSpec { containers: 1, ..SchedulingSpec::default() }),
            reach: Vec::new(),
            volumes: Arc::default(),
            resource_claims: Arc::default(),
        }
    }

    /// Any Pod with this spec: it has no name, and waits.
    pub fn with_scheduling(namespace: Arc<str>, scheduling: Arc<SchedulingSpec>) -> Self {
        Self {
            key: ObjectKey { namespace, name: Arc::default() },
            uid: PodUid::from(Arc::default()),
            node: None,
            nominated_node: None,
            started_at_unix_s: None,
            deletion: Deletion::default(),
            scheduling,
            reach: Vec::new(),
            volumes: Arc::default(),
            resource_claims: Arc::default(),
        }
    }

    pub fn namespace(&self) -> &Arc<str> {
        &self.key.namespace
    }
}

/// The rules speak of a Pod's labels and requests, not of its spec's.
impl Deref for ClusterPod {
    type Target = SchedulingSpec;

    fn deref(&self) -> &SchedulingSpec {
        &self.scheduling
    }
}

/// Changes this Pod alone: its equals keep the spec they have.
impl DerefMut for ClusterPod {
    fn deref_mut(&mut self) -> &mut SchedulingSpec {
        Arc::make_mut(&mut self.scheduling)
    }
}
