//! ReplicationControllers: the Pods of one are spread by default.

use std::collections::BTreeMap;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::LabelSelector;
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, key, kube_resource, labels, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireReplicationController {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireReplicationControllerSpec,
}

/// The oldest of the owners selects by plain labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireReplicationControllerSpec {
    selector: BTreeMap<String, String>,
}

kube_resource!(
    WireReplicationController,
    "ReplicationController",
    "",
    "v1",
    "replicationcontrollers",
    Namespaced
);

impl WatchedResource for WireReplicationController {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::ReplicationController);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let selector = LabelSelector::of_labels(&labels(&self.spec.selector));
        Some(Event::seen(ClusterObject::ReplicationController(key(&self.metadata), selector)))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::ReplicationController(key)))
    }
}
