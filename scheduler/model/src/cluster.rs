//! Nodes and Pods with everything that the rules of kube-scheduler look at.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Deletion, FeatureNames, Node, NodeImage, NodeName, ObjectKey, PodUid, Reach, Shape};

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

/// A Pod that has not ended: on a Node, or waiting for one. What it asks for is its [`Shape`],
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
    pub shape: Arc<Shape>,
    /// Where the Corridor and the MemoryBundle that it refers to can be used.
    pub reach: Vec<Reach>,
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
            shape: Arc::new(Shape { containers: 1, ..Shape::default() }),
            reach: Vec::new(),
        }
    }

    /// Any Pod of this shape: it has no name, and waits.
    pub fn of_shape(namespace: Arc<str>, shape: Arc<Shape>) -> Self {
        Self {
            key: ObjectKey { namespace, name: Arc::default() },
            uid: PodUid::from(Arc::default()),
            node: None,
            nominated_node: None,
            started_at_unix_s: None,
            deletion: Deletion::default(),
            shape,
            reach: Vec::new(),
        }
    }

    pub fn namespace(&self) -> &Arc<str> {
        &self.key.namespace
    }
}

/// The rules speak of a Pod's labels and requests, not of its shape's.
impl Deref for ClusterPod {
    type Target = Shape;

    fn deref(&self) -> &Shape {
        &self.shape
    }
}

/// Changes this Pod alone: its equals keep the shape they have.
impl DerefMut for ClusterPod {
    fn deref_mut(&mut self) -> &mut Shape {
        Arc::make_mut(&mut self.shape)
    }
}
