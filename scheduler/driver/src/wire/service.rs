use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireService {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireServiceSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireServiceSpec {
    /// Empty: its endpoints are managed by others.
    pub selector: BTreeMap<String, String>,
}

kube_resource!(WireService, "Service", "", "v1", "services", NamespaceResourceScope);
