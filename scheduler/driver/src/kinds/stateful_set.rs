//! StatefulSets: the Pods of one are spread by default.

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use serde::Deserialize;

use super::owner::WireOwnerSpec;
use super::{Gone, WatchState, WatchedResource, key, kube_resource, label_selector, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireStatefulSet {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireOwnerSpec,
}

kube_resource!(WireStatefulSet, "StatefulSet", "apps", "v1", "statefulsets", Namespaced);

impl WatchedResource for WireStatefulSet {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::StatefulSet);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let selector = label_selector(self.spec.selector.as_ref());
        Some(Event::seen(ClusterObject::StatefulSet(key(&self.metadata), selector)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::StatefulSet(key)))
    }
}
