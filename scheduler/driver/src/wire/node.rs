use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prost::Message;
use serde::Deserialize;

use super::absent::null_as_default;
use super::{FromProtobuf, WireQuantity, kube_resource, meta, protobuf};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireNode {
    #[serde(deserialize_with = "meta::with_labels")]
    pub metadata: ObjectMeta,
    pub spec: WireNodeSpec,
    pub status: WireNodeStatus,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireNodeSpec {
    #[prost(bool, tag = "4")]
    pub unschedulable: bool,
    #[prost(message, repeated, tag = "5")]
    pub taints: Vec<WireTaint>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireTaint {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
    #[prost(string, tag = "3")]
    pub effect: String,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeStatus {
    #[prost(btree_map = "string, message", tag = "2")]
    pub allocatable: BTreeMap<String, WireQuantity>,
    #[prost(message, repeated, tag = "8")]
    pub images: Vec<WireNodeImage>,
    #[prost(string, repeated, tag = "14")]
    pub declared_features: Vec<String>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeImage {
    /// The kubelet writes `null` for an image that has lost its names.
    #[serde(deserialize_with = "null_as_default")]
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    #[prost(int64, tag = "2")]
    pub size_bytes: i64,
}

kube_resource!(WireNode, "Node", "", "v1", "nodes", Cluster, {
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = Some(protobuf::node);
});
