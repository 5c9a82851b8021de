//! Objects of `resource.k8s.io` in the words of the engine, for whoever has them without a watch: the benches.

use std::sync::Arc;

use engine::{ClusterObject, Event};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};

use crate::kinds::SelectorEvaluations;
use crate::translate::{device_class, resource_claim, resource_slice};

/// Reads objects as the watches do. Each comes with the verdicts that it needs.
#[derive(Debug, Default)]
pub struct DeviceObjects {
    selectors: SelectorEvaluations,
}

impl DeviceObjects {
    pub fn class(&mut self, wire: &DeviceClass) -> Vec<Event> {
        let class = device_class(wire);
        self.selectors.class_seen(&class);
        self.with_verdicts(ClusterObject::DeviceClass(class.name.clone(), Arc::new(class)))
    }

    pub fn slice(&mut self, wire: &ResourceSlice) -> Vec<Event> {
        let slice = resource_slice(wire, |it| self.selectors.share(it));
        self.selectors.slice_seen(&slice);
        self.with_verdicts(ClusterObject::ResourceSlice(slice.name.clone(), Arc::new(slice)))
    }

    pub fn claim(&mut self, wire: &ResourceClaim) -> Vec<Event> {
        let claim = resource_claim(wire);
        self.selectors.claim_seen(&claim);
        self.with_verdicts(ClusterObject::ResourceClaim(claim.key.clone(), Arc::new(claim)))
    }

    fn with_verdicts(&mut self, object: ClusterObject) -> Vec<Event> {
        let mut events = self.selectors.take_pending();
        events.push(Event::seen(object));
        events
    }
}
