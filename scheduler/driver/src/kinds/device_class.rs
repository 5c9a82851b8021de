//! DeviceClasses: which devices a claim means by each. Before Kubernetes 1.34 there is none that counts.

use std::sync::Arc;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use k8s_openapi::api::resource::v1::DeviceClass;

use super::{Gone, WatchState, WatchedResource};
use crate::translate::device_class;
use crate::wire::Wire;

impl Wire for DeviceClass {
    const NAME: &'static str = "deviceclasses.resource.k8s.io";
}

impl WatchedResource for DeviceClass {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::DeviceClass);
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let class = device_class(&self);
        watched.selectors.class_seen(&class);
        Some(Event::seen(ClusterObject::DeviceClass(class.name.clone(), Arc::new(class))))
    }

    fn gone((key, _): Gone, watched: &mut WatchState) -> Option<Event> {
        watched.selectors.class_gone(&key.name);
        Some(Event::gone(ClusterObjectId::DeviceClass(key.name)))
    }
}
