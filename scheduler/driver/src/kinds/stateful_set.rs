//! StatefulSets: the Pods of one are spread by default.

use engine::{Event, WatchedKind};
use model::OwnerKind;
use serde::Deserialize;

use super::owner::{self, WireOwnerSpec};
use super::{Gone, WatchState, WatchedResource, kube_resource, label_selector, meta};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireStatefulSet {
    #[serde(deserialize_with = "meta::identity")]
    metadata: meta::ObjectMeta,
    spec: WireOwnerSpec,
}

kube_resource!(WireStatefulSet, "StatefulSet", "apps", "v1", "statefulsets", Namespaced);

impl WatchedResource for WireStatefulSet {
    const KIND: WatchedKind = WatchedKind::Owners(OwnerKind::StatefulSet);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let selector = label_selector(self.spec.selector.as_ref());
        Some(owner::seen(OwnerKind::StatefulSet, &self.metadata, selector))
    }

    fn gone(gone: Gone, _: &mut WatchState) -> Option<Event> {
        Some(owner::gone(OwnerKind::StatefulSet, gone))
    }
}
