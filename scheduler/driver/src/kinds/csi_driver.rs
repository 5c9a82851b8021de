//! CSIDrivers: whether a driver says how much it can still make.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::CsiDriver;
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireCsiDriver {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    storage_capacity: Option<bool>,
}

kube_resource!(WireCsiDriver, "CSIDriver", "storage.k8s.io", "v1", "csidrivers", Cluster);

impl WatchedResource for WireCsiDriver {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::CsiDriver);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let name = key(&self.metadata).name;
        let has_storage_capacity = self.spec.storage_capacity == Some(true);
        let driver = CsiDriver { name: name.clone(), has_storage_capacity };
        Some(Event::seen(ClusterObject::CsiDriver(name, driver)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::CsiDriver(key.name)))
    }
}
