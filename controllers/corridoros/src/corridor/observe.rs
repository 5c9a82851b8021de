//! A Corridor and its path at corrd, as a reconcile sees them.

use daemons::corrd::{Corridor, CorridorTelemetry, Lease};
use daemons::{Owner, Reply};
use jiff::Timestamp;

use crate::context::Context;
use crate::lifecycle::{Allocation, Observed, Use, not_configured};

pub(super) fn observed(object: &crds::Corridor) -> Observed {
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

pub(super) fn list<'a>(context: &'a Context, owner_prefix: &'a str) -> Reply<'a, Vec<Corridor>> {
    match &context.backends.corrd {
        Some(corrd) => corrd.list(owner_prefix),
        None => not_configured("list corridors"),
    }
}

pub(super) fn get<'a>(context: &'a Context, id: &'a str) -> Reply<'a, Option<Corridor>> {
    match &context.backends.corrd {
        Some(corrd) => corrd.get(id),
        None => not_configured("get corridor"),
    }
}

pub(super) fn telemetry<'a>(
    context: &'a Context,
    id: &'a str,
) -> Reply<'a, Option<CorridorTelemetry>> {
    match &context.backends.corrd {
        Some(corrd) => corrd.telemetry(id),
        None => not_configured("read corridor"),
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
