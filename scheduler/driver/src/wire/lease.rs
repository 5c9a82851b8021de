use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use serde::Deserialize;

use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireLease {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireLeaseSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireLeaseSpec {
    pub renew_time: Option<MicroTime>,
}

kube_resource!(WireLease, "Lease", "coordination.k8s.io", "v1", "leases", NamespaceResourceScope);
