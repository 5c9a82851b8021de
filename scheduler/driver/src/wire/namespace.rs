use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireNamespace {
    #[serde(deserialize_with = "meta::with_labels")]
    pub metadata: ObjectMeta,
}

kube_resource!(WireNamespace, "Namespace", "", "v1", "namespaces", ClusterResourceScope);
