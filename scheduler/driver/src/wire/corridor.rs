use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{WireObjectCondition, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireCorridor {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireCorridorSpec,
    pub status: WireCorridorStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireCorridorSpec {
    pub min_gbps: f64,
    pub node_selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireCorridorStatus {
    pub phase: Option<crds::Phase>,
    pub in_use: Option<i64>,
    pub conditions: Vec<WireObjectCondition>,
    pub corridor_id: Option<String>,
    pub achievable_gbps: Option<f64>,
    pub floor_gbps: Option<f64>,
}

kube_resource!(
    WireCorridor,
    "Corridor",
    "corridoros.io",
    "v1alpha1",
    "corridors",
    NamespaceResourceScope
);
