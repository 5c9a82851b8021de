use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{WireObjectCondition, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBundle {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireBundleSpec,
    pub status: WireBundleStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireBundleSpec {
    #[serde(rename = "bandwidthFloorGBs")]
    pub bandwidth_floor_gbs: f64,
    pub shareable: bool,
    pub security_domain: String,
    pub node_selector: BTreeMap<String, String>,
    pub schedule: Option<crds::Schedule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireBundleStatus {
    pub phase: Option<crds::Phase>,
    pub in_use: Option<i64>,
    pub conditions: Vec<WireObjectCondition>,
    pub ffm_handle: Option<String>,
    #[serde(rename = "achievedGBs")]
    pub achieved_gbs: Option<f64>,
    #[serde(rename = "floorGBs")]
    pub floor_gbs: Option<f64>,
}

kube_resource!(
    WireBundle,
    "MemoryBundle",
    "corridoros.io",
    "v1alpha1",
    "memorybundles",
    NamespaceResourceScope
);
