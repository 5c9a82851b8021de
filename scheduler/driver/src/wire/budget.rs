use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{WireSelector, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBudget {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireBudgetSpec,
    pub status: WireBudgetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBudgetSpec {
    pub selector: Option<WireSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireBudgetStatus {
    pub disruptions_allowed: i32,
    /// By the name of the Pod, with the time of its disruption.
    pub disrupted_pods: BTreeMap<String, Option<String>>,
}

kube_resource!(
    WireBudget,
    "PodDisruptionBudget",
    "policy",
    "v1",
    "poddisruptionbudgets",
    NamespaceResourceScope
);
