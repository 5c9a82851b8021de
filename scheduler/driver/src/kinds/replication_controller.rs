//! ReplicationControllers: the Pods of one are spread by default.

use std::collections::BTreeMap;

use engine::{Event, WatchedKind};
use model::{LabelSelector, OwnerKind};
use serde::Deserialize;

use super::{Gone, WatchState, WatchedResource, kube_resource, labels, meta, owner};

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
    const KIND: WatchedKind = WatchedKind::Owners(OwnerKind::ReplicationController);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let selector = LabelSelector::of_labels(&labels(&self.spec.selector));
        Some(owner::seen(OwnerKind::ReplicationController, &self.metadata, selector))
    }

    fn gone(gone: Gone, _: &mut WatchState) -> Option<Event> {
        Some(owner::gone(OwnerKind::ReplicationController, gone))
    }
}
