use serde::Deserialize;

use super::absent::null_as_default;
use super::{WireRequirement, WireSelector};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireAffinity {
    #[serde(rename = "nodeAffinity")]
    pub node: WireNodeAffinity,
    #[serde(rename = "podAffinity")]
    pub pod: WirePodAffinity,
    #[serde(rename = "podAntiAffinity")]
    pub pod_anti: WirePodAffinity,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireNodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<WireNodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<WirePreferredNodeTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeSelector {
    #[serde(deserialize_with = "null_as_default")]
    pub node_selector_terms: Vec<WireNodeSelectorTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeSelectorTerm {
    pub match_expressions: Vec<WireRequirement>,
    pub match_fields: Vec<WireRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WirePreferredNodeTerm {
    pub weight: i32,
    pub preference: WireNodeSelectorTerm,
}

/// `podAffinity` or `podAntiAffinity`: they have the same form.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WirePodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Vec<WirePodTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<WireWeightedPodTerm>,
}

/// Without `matchLabelKeys` and `mismatchLabelKeys`: the API server has merged them into the
/// selector when the Pod was created.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePodTerm {
    pub topology_key: String,
    pub label_selector: Option<WireSelector>,
    pub namespaces: Vec<String>,
    pub namespace_selector: Option<WireSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireWeightedPodTerm {
    pub weight: i32,
    pub pod_affinity_term: WirePodTerm,
}
