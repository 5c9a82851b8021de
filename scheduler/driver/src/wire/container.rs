use std::collections::BTreeMap;

use prost::Message;
use serde::Deserialize;

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireContainer {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub image: String,
    #[prost(message, repeated, tag = "6")]
    pub ports: Vec<WirePort>,
    #[prost(message, required, tag = "8")]
    pub resources: WireResourceLists,
    /// On an init container, `Always` makes it a sidecar.
    #[prost(string, tag = "24")]
    pub restart_policy: String,
    #[prost(message, repeated, tag = "25")]
    pub restart_policy_rules: Vec<WireRestartRule>,
}

impl WireContainer {
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireResourceLists {
    #[prost(btree_map = "string, message", tag = "2")]
    pub requests: BTreeMap<String, WireQuantity>,
}

/// A quantity as it is written.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(transparent)]
pub(crate) struct WireQuantity {
    #[prost(string, tag = "1")]
    pub text: String,
}

/// With `hostNetwork` the API server has made container ports host ports.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePort {
    #[prost(int32, tag = "2")]
    pub host_port: i32,
    #[prost(string, tag = "4")]
    pub protocol: String,
    #[serde(rename = "hostIP")]
    #[prost(string, tag = "5")]
    pub host_ip: String,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireRestartRule {
    #[prost(string, tag = "1")]
    pub action: String,
}

/// What the kubelet has admitted and applied; differs from the spec during a resize.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireContainerStatus {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(btree_map = "string, message", tag = "10")]
    pub allocated_resources: BTreeMap<String, WireQuantity>,
    #[prost(message, optional, tag = "11")]
    pub resources: Option<WireResourceLists>,
}
