//! ReplicaSets: the Pods of one are spread by default.

use engine::{Event, WatchedKind};
use model::OwnerKind;
use serde::Deserialize;

use super::owner::{self, WireOwnerSpec};
use super::{Gone, WatchState, WatchedResource, kube_resource, label_selector, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireReplicaSet {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireOwnerSpec,
}

kube_resource!(WireReplicaSet, "ReplicaSet", "apps", "v1", "replicasets", Namespaced);

impl WatchedResource for WireReplicaSet {
    const KIND: WatchedKind = WatchedKind::Owners(OwnerKind::ReplicaSet);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let selector = label_selector(self.spec.selector.as_ref());
        Some(owner::seen(OwnerKind::ReplicaSet, &self.metadata, selector))
    }

    fn gone(gone: Gone, _: &mut WatchState) -> Option<Event> {
        Some(owner::gone(OwnerKind::ReplicaSet, gone))
    }
}
