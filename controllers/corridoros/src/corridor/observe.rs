//! A Corridor and its path at corrd, as a reconcile sees them.

use daemons::corrd::{Corrd, Corridor, CorridorTelemetry, Lease};
use daemons::{Owner, Reply};
use jiff::Timestamp;

use super::Corridors;
use crate::lifecycle::{Allocation, ObserveStep, Observed, Use};

impl ObserveStep for Corridors {
    fn observed(object: &crds::Corridor) -> Observed {
        let status = object.status.clone().unwrap_or_default();
        Observed::new(
            &object.metadata,
            crds::CORRIDOR_FINALIZER,
            status.phase,
            status.corridor_id,
            Use { count: status.in_use, pods: &status.in_use_by },
            &status.conditions,
        )
    }

    fn list<'a>(corrd: &'a dyn Corrd, owner_prefix: &'a str) -> Reply<'a, Vec<Corridor>> {
        corrd.list(owner_prefix)
    }

    fn get<'a>(corrd: &'a dyn Corrd, id: &'a str) -> Reply<'a, Option<Corridor>> {
        corrd.get(id)
    }

    fn telemetry<'a>(corrd: &'a dyn Corrd, id: &'a str) -> Reply<'a, Option<CorridorTelemetry>> {
        corrd.telemetry(id)
    }
}

impl Allocation for Corridor {
    fn id(&self) -> &str {
        &self.corridor_id
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn device(&self) -> Option<&str> {
        self.path.device_id.as_deref()
    }

    fn lease(&self) -> (u64, Timestamp) {
        (self.policy_lease_ttl_s, self.lease_expires_at)
    }

    fn set_lease(&mut self, lease: Lease) {
        (self.policy_lease_ttl_s, self.lease_expires_at) =
            (lease.policy_lease_ttl_s, lease.lease_expires_at);
    }
}
