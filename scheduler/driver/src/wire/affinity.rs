use prost::Message;
use serde::Deserialize;

use super::absent::null_as_default;
use super::{WireRequirement, WireSelector};

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireAffinity {
    #[serde(rename = "nodeAffinity")]
    #[prost(message, required, tag = "1")]
    pub node: WireNodeAffinity,
    #[serde(rename = "podAffinity")]
    #[prost(message, required, tag = "2")]
    pub pod: WirePodAffinity,
    #[serde(rename = "podAntiAffinity")]
    #[prost(message, required, tag = "3")]
    pub pod_anti: WirePodAffinity,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireNodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    #[prost(message, optional, tag = "1")]
    pub required: Option<WireNodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    #[prost(message, repeated, tag = "2")]
    pub preferred: Vec<WirePreferredNodeTerm>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeSelector {
    #[serde(deserialize_with = "null_as_default")]
    #[prost(message, repeated, tag = "1")]
    pub node_selector_terms: Vec<WireNodeSelectorTerm>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeSelectorTerm {
    #[prost(message, repeated, tag = "1")]
    pub match_expressions: Vec<WireRequirement>,
    #[prost(message, repeated, tag = "2")]
    pub match_fields: Vec<WireRequirement>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WirePreferredNodeTerm {
    #[prost(int32, tag = "1")]
    pub weight: i32,
    #[prost(message, required, tag = "2")]
    pub preference: WireNodeSelectorTerm,
}

/// `podAffinity` or `podAntiAffinity`: they have the same form.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WirePodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    #[prost(message, repeated, tag = "1")]
    pub required: Vec<WirePodTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    #[prost(message, repeated, tag = "2")]
    pub preferred: Vec<WireWeightedPodTerm>,
}

/// Without `matchLabelKeys` and `mismatchLabelKeys`: the API server has merged them into the
/// selector when the Pod was created.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodTerm {
    #[prost(message, optional, tag = "1")]
    pub label_selector: Option<WireSelector>,
    #[prost(string, repeated, tag = "2")]
    pub namespaces: Vec<String>,
    #[prost(string, tag = "3")]
    pub topology_key: String,
    #[prost(message, optional, tag = "4")]
    pub namespace_selector: Option<WireSelector>,
}

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireWeightedPodTerm {
    #[prost(int32, tag = "1")]
    pub weight: i32,
    #[prost(message, required, tag = "2")]
    pub pod_affinity_term: WirePodTerm,
}
