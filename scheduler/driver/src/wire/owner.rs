//! The controllers whose Pods are spread by default, as far as they select Pods.

use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{WireSelector, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireReplicationController {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireReplicationControllerSpec,
}

/// The oldest of the three selects by plain labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireReplicationControllerSpec {
    pub selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireReplicaSet {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireOwnerSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireStatefulSet {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireOwnerSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireOwnerSpec {
    pub selector: Option<WireSelector>,
}

kube_resource!(
    WireReplicationController,
    "ReplicationController",
    "",
    "v1",
    "replicationcontrollers",
    NamespaceResourceScope
);
kube_resource!(WireReplicaSet, "ReplicaSet", "apps", "v1", "replicasets", NamespaceResourceScope);
kube_resource!(
    WireStatefulSet,
    "StatefulSet",
    "apps",
    "v1",
    "statefulsets",
    NamespaceResourceScope
);
