//! DeviceClasses: the extended resources that they serve. Before Kubernetes 1.34 there is none that counts.

use std::sync::Arc;

use engine::{Event, Watched, WatchedId, WatchedKind};
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireDeviceClass {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireDeviceClassSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireDeviceClassSpec {
    extended_resource_name: Option<String>,
}

kube_resource!(WireDeviceClass, "DeviceClass", "resource.k8s.io", "v1", "deviceclasses", Cluster);

impl WatchedResource for WireDeviceClass {
    const KIND: WatchedKind = WatchedKind::DeviceClasses;
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let resource = self.spec.extended_resource_name.map(Arc::from);
        Some(Event::Seen(Watched::DeviceClass { class: key(&self.metadata).name, resource }))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::Gone(WatchedId::DeviceClass(key.name)))
    }
}
