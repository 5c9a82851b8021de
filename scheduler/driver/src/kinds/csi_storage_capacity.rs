//! CSIStorageCapacities: how large a volume of a class can be made, and for which Nodes.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::CsiStorageCapacity;
use serde::Deserialize;

use super::{
    Gone, WatchState, WatchedResource, WireSelector, key, kube_resource, label_selector, meta,
};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireCapacity {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    storage_class_name: String,
    node_topology: Option<WireSelector>,
    capacity: Option<String>,
    maximum_volume_size: Option<String>,
}

kube_resource!(
    WireCapacity,
    "CSIStorageCapacity",
    "storage.k8s.io",
    "v1",
    "csistoragecapacities",
    Namespaced
);

impl WatchedResource for WireCapacity {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::CsiStorageCapacity);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let amount = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        let capacity = amount(&self.capacity);
        let object = CsiStorageCapacity {
            key: key(&self.metadata),
            class: self.storage_class_name.as_str().into(),
            node_topology: self.node_topology.as_ref().map(|it| label_selector(Some(it))),
            limit: amount(&self.maximum_volume_size).or(capacity),
            capacity,
        };
        Some(Event::seen(ClusterObject::CsiStorageCapacity(object.key.clone(), object)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::CsiStorageCapacity(key)))
    }
}
