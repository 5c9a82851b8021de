use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WirePolicy {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WirePolicySpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePolicySpec {
    pub allowed_tenants: Vec<String>,
}

kube_resource!(
    WirePolicy,
    "AttestationPolicy",
    "corridoros.io",
    "v1alpha1",
    "attestationpolicies",
    NamespaceResourceScope
);
