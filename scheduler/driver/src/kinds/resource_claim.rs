//! ResourceClaims: which devices each asks for, and which it has.

use std::sync::Arc;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::{Gone, WatchState, WatchedResource};
use crate::translate::resource_claim;
use crate::wire::Wire;

impl Wire for ResourceClaim {
    const NAME: &'static str = "resourceclaims.resource.k8s.io";
}

impl WatchedResource for ResourceClaim {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::ResourceClaim);
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let claim = resource_claim(&self);
        watched.selectors.claim_seen(&claim);
        Some(Event::seen(ClusterObject::ResourceClaim(claim.key.clone(), Arc::new(claim))))
    }

    fn gone((key, _): Gone, watched: &mut WatchState) -> Option<Event> {
        watched.selectors.claim_gone(&key);
        Some(Event::gone(ClusterObjectId::ResourceClaim(key)))
    }
}
