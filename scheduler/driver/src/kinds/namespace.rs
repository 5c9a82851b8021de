//! Namespaces: their labels.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, labels, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireNamespace {
    #[serde(deserialize_with = "meta::with_labels")]
    metadata: meta::ObjectMeta,
}

kube_resource!(WireNamespace, "Namespace", "", "v1", "namespaces", Cluster);

impl WatchedResource for WireNamespace {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::Namespace);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let labels = self.metadata.labels.as_ref().map(labels).unwrap_or_default();
        Some(Event::seen(ClusterObject::Namespace(key(&self.metadata).name, labels)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::Namespace(key.name)))
    }
}
