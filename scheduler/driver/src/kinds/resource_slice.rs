//! ResourceSlices: the devices that drivers publish.

use std::sync::Arc;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use k8s_openapi::api::resource::v1::ResourceSlice;

use super::{Gone, WatchState, WatchedResource};
use crate::translate::resource_slice;
use crate::wire::Wire;

impl Wire for ResourceSlice {
    const NAME: &'static str = "resourceslices.resource.k8s.io";
}

impl WatchedResource for ResourceSlice {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::ResourceSlice);
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let slice = resource_slice(&self, |device_type| watched.selectors.share(device_type));
        watched.selectors.slice_seen(&slice);
        Some(Event::seen(ClusterObject::ResourceSlice(slice.name.clone(), Arc::new(slice))))
    }

    fn gone((key, _): Gone, watched: &mut WatchState) -> Option<Event> {
        watched.selectors.slice_gone(&key.name);
        Some(Event::gone(ClusterObjectId::ResourceSlice(key.name)))
    }
}
