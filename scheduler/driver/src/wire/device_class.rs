use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireDeviceClass {
    #[serde(deserialize_with = "meta::identity")]
    pub metadata: ObjectMeta,
    pub spec: WireDeviceClassSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireDeviceClassSpec {
    pub extended_resource_name: Option<String>,
}

kube_resource!(
    WireDeviceClass,
    "DeviceClass",
    "resource.k8s.io",
    "v1",
    "deviceclasses",
    ClusterResourceScope
);
