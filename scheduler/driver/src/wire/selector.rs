use std::collections::BTreeMap;

use serde::Deserialize;

/// `matchLabels` and `matchExpressions`. Whether the whole is absent or empty makes a difference,
/// so it always stands in an `Option`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<WireRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireRequirement {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}
