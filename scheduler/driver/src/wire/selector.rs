use std::collections::BTreeMap;

use prost::Message;
use serde::Deserialize;

/// `matchLabels` and `matchExpressions`. Whether the whole is absent or empty makes a difference,
/// so it always stands in an `Option`.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireSelector {
    #[prost(btree_map = "string, string", tag = "1")]
    pub match_labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    pub match_expressions: Vec<WireRequirement>,
}

/// `LabelSelectorRequirement` or `NodeSelectorRequirement`: they have the same form.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(default)]
pub(crate) struct WireRequirement {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub operator: String,
    #[prost(string, repeated, tag = "3")]
    pub values: Vec<String>,
}
