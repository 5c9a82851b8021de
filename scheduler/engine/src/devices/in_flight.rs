//! Devices whose write is under way. They are kept for the Pod until the outcome is known, also if the Pod itself is gone
//! by then: the write may still be carried out.

use std::collections::BTreeMap;

use model::PodUid;
use rules::{ClaimToReserve, DeviceChange};

use crate::decision::PrepareWrite;
use crate::engine::Engine;
use crate::wake::ClusterChange;

/// By Pods: one write of a Pod is under way at a time, and the driver ends each.
pub(crate) type ClaimsInFlight = BTreeMap<PodUid, Box<[ClaimToReserve]>>;

impl Engine {
    pub(crate) fn claims_sent(&mut self, pod: &PodUid, writes: &[PrepareWrite]) {
        let is_of_claim = |write: &PrepareWrite| match write {
            PrepareWrite::ReserveClaim { .. } => true,
            PrepareWrite::BindVolume { .. }
            | PrepareWrite::SelectNode { .. }
            | PrepareWrite::ProtectClaim { .. }
            | PrepareWrite::DeallocateClaim { .. } => false,
        };
        let Some(record) = self.observed.pods.get(pod) else { return };
        if writes.iter().any(is_of_claim) {
            let claims = record.resource_claims().into();
            self.observed.claims_in_flight.insert(pod.clone(), claims);
        }
    }

    /// The outcome is known. What was written is observed by now.
    pub(crate) fn claims_answered(&mut self, pod: &PodUid) {
        let Some(claims) = self.observed.claims_in_flight.remove(pod) else { return };
        let record = self.observed.pods.get(pod);
        if record.is_some_and(|record| record.resource_claims() == &*claims) {
            return;
        }
        let cluster = &mut self.observed.cluster;
        if cluster.devices.forget(pod, &claims) {
            self.placing.devices_changed(DeviceChange::Released(&claims), cluster);
            self.wake_after(ClusterChange::Devices(DeviceChange::Released(&claims)));
        }
    }

    /// After everything that Pods have taken was forgotten.
    pub(crate) fn assume_claims_in_flight(&mut self) {
        for (pod, claims) in &self.observed.claims_in_flight {
            self.observed.cluster.devices.assume(pod, claims);
        }
    }
}
