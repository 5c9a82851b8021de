use prost::Message;
use serde::Deserialize;

use super::WireSelector;

#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireSpreadConstraint {
    #[prost(int32, tag = "1")]
    pub max_skew: i32,
    #[prost(string, tag = "2")]
    pub topology_key: String,
    #[prost(string, tag = "3")]
    pub when_unsatisfiable: String,
    #[prost(message, optional, tag = "4")]
    pub label_selector: Option<WireSelector>,
    #[prost(int32, optional, tag = "5")]
    pub min_domains: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub node_affinity_policy: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub node_taints_policy: Option<String>,
    #[prost(string, repeated, tag = "8")]
    pub match_label_keys: Vec<String>,
}
