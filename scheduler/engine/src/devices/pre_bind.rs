//! PreBind: what is written into the claims of a placed Pod, and when their devices are ready.

use model::{Allocation, PodUid, ResourceClaim};
use rules::ClaimToReserve;

use crate::binding_cycle::ClaimProgress;
use crate::decision::PrepareWrite;
use crate::engine::Engine;
use crate::ledger::Reservation;

impl Engine {
    /// What is still to be written; nothing of what an earlier attempt has written.
    pub(crate) fn claim_writes(
        &self,
        pod: &PodUid,
        claims: &[ClaimToReserve],
    ) -> Vec<PrepareWrite> {
        let mut writes = Vec::new();
        for to_reserve in claims {
            let known = self.observed.cluster.objects.resource_claims.get(&to_reserve.key);
            let Some(known) = known.filter(|it| it.uid == to_reserve.uid) else { continue };
            if known.allocation.is_some() && known.is_reserved_for(pod) {
                continue;
            }
            let (claim, claim_uid) = (to_reserve.key.clone(), to_reserve.uid.clone());
            if !known.has_finalizer {
                let (claim, claim_uid) = (claim.clone(), claim_uid.clone());
                writes.push(PrepareWrite::ProtectClaim { claim, claim_uid });
            }
            let allocation = to_reserve.allocation.clone();
            writes.push(PrepareWrite::ReserveClaim { claim, claim_uid, allocation });
        }
        writes
    }

    /// To be asked once everything is written, and after every change of the claims.
    pub(crate) fn device_progress(&self, pod: &PodUid, of: &Reservation) -> ClaimProgress {
        let each = of.claims.iter().map(|claim| self.progress_of(pod, claim));
        each.fold(ClaimProgress::Ready, ClaimProgress::and)
    }

    fn progress_of(&self, pod: &PodUid, reserved: &ClaimToReserve) -> ClaimProgress {
        let name = &reserved.key.name;
        let elsewhere =
            |how: &str| ClaimProgress::Failed(format!("claim {name} got {how} in the meantime"));
        let known = self.observed.cluster.objects.resource_claims.get(&reserved.key);
        let Some(known) = known.filter(|it| it.uid == reserved.uid && !it.is_deleting) else {
            return elsewhere("deleted");
        };
        let Some(allocation) = &known.allocation else {
            return elsewhere("deallocated elsewhere");
        };
        let is_other = |wanted: &Allocation| wanted.devices != allocation.devices;
        if reserved.allocation.as_deref().is_some_and(is_other) {
            return elsewhere("allocated elsewhere");
        }
        if !known.is_reserved_for(pod) {
            return elsewhere("reserved elsewhere");
        }
        progress_of_devices(known)
    }
}

/// Whether the conditions that devices wait for are there.
fn progress_of_devices(claim: &ResourceClaim) -> ClaimProgress {
    if let Some((device, condition)) = claim.failed_device() {
        let claim = &claim.key;
        return ClaimProgress::Failed(format!(
            "device binding failed: claim={claim}, device={device}, condition={condition}"
        ));
    }
    if claim.has_ready_devices() { ClaimProgress::Ready } else { ClaimProgress::Waiting }
}
