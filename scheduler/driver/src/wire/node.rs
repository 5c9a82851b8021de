use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::absent::null_as_default;
use super::{FromProtobuf, kube_resource, meta, protobuf};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireNode {
    #[serde(deserialize_with = "meta::with_labels")]
    pub metadata: ObjectMeta,
    pub spec: WireNodeSpec,
    pub status: WireNodeStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireNodeSpec {
    pub unschedulable: bool,
    pub taints: Vec<WireTaint>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireTaint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeStatus {
    pub allocatable: BTreeMap<String, String>,
    pub images: Vec<WireNodeImage>,
    pub declared_features: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeImage {
    /// The kubelet writes `null` for an image that has lost its names.
    #[serde(deserialize_with = "null_as_default")]
    pub names: Vec<String>,
    pub size_bytes: i64,
}

kube_resource!(WireNode, "Node", "", "v1", "nodes", Cluster, {
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(protobuf::node);
});
