//! Reserve: which devices a Pod gets on its Node, and that no other Pod gets them.

use std::sync::Arc;

use model::{DeviceId, NodeName, Pod};
use rules::{ClaimToReserve, name_shares};

use crate::engine::Engine;
use crate::ledger::Reservation;
use crate::queue::ParkKey;

impl Engine {
    /// What the Pod takes of its claims on the Node. An error says why the decision was wrong.
    pub(crate) fn claims_on(
        &mut self,
        pod: &Pod,
        node: &NodeName,
    ) -> Result<Box<[ClaimToReserve]>, String> {
        if pod.spec.resource_claims.is_empty() {
            return Ok(Box::default());
        }
        let Some(node) = self.observed.cluster.nodes.get(node) else {
            return Err(format!("there is no node {node}"));
        };
        let rules = self.rules_of(&pod.spec.profile);
        let to_place = self.pod_to_place(&ParkKey::of_pod(pod));
        let found = rules::find_pod_devices(rules, &self.observed.cluster, &to_place, node);
        let mut claims = found.map_err(|reasons| {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            format!("its devices are not to be had there: {}", reasons.join(", "))
        })?;
        let rng = &mut self.rng;
        for claim in &mut claims {
            let Some(allocation) = &mut claim.allocation else { continue };
            name_shares(Arc::make_mut(allocation), || rng.uuid_for(&claim.uid).into());
        }
        Ok(claims.into())
    }

    /// A device of the reservation that is given out twice, counted from the claims, independently of the rules that found
    /// it free.
    pub(crate) fn contested_device(&self, reservation: &Reservation) -> Option<DeviceId> {
        let taken = &self.observed.cluster.devices.taken;
        let new = reservation.claims.iter().filter_map(|it| it.allocation.as_ref());
        let mut devices = new.flat_map(|it| &it.devices).filter(|it| !it.admin_access);
        let contested = devices.find(|device| {
            taken.device(&device.id).is_some_and(|it| {
                let holders = it.holders().count();
                holders > 1 || holders == 1 && it.is_shared()
            })
        });
        contested.map(|device| device.id.clone())
    }
}
