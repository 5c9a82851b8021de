//! A MemoryBundle and its memory at memqosd, as a reconcile sees them.

use daemons::corrd::Lease;
use daemons::memqosd::{Bundle, BundleTelemetry};
use daemons::{Owner, Reply};
use jiff::Timestamp;

use crate::context::Context;
use crate::lifecycle::{Allocation, Observed, Use, not_configured};

pub(super) fn observed(object: &crds::MemoryBundle) -> Observed {
    let status = object.status.clone().unwrap_or_default();
    Observed::new(
        &object.metadata,
        crds::FFM_FINALIZER,
        status.phase,
        status.ffm_handle,
        Use { count: status.in_use, pods: &status.in_use_by },
        &status.conditions,
    )
}

pub(super) fn list<'a>(context: &'a Context, owner_prefix: &'a str) -> Reply<'a, Vec<Bundle>> {
    match &context.backends.memqosd {
        Some(memqosd) => memqosd.list(owner_prefix),
        None => not_configured("list bundles"),
    }
}

pub(super) fn get<'a>(context: &'a Context, id: &'a str) -> Reply<'a, Option<Bundle>> {
    match &context.backends.memqosd {
        Some(memqosd) => memqosd.get(id),
        None => not_configured("get bundle"),
    }
}

pub(super) fn telemetry<'a>(
    context: &'a Context,
    id: &'a str,
) -> Reply<'a, Option<BundleTelemetry>> {
    match &context.backends.memqosd {
        Some(memqosd) => memqosd.telemetry(id),
        None => not_configured("read bundle"),
    }
}

impl Allocation for Bundle {
    fn id(&self) -> &str {
        &self.ffm_handle
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn device(&self) -> Option<&str> {
        self.memory.device_id.as_deref()
    }

    fn lease(&self) -> (u64, Timestamp) {
        (self.policy_lease_ttl_s, self.lease_expires_at)
    }

    fn set_lease(&mut self, lease: Lease) {
        (self.policy_lease_ttl_s, self.lease_expires_at) =
            (lease.policy_lease_ttl_s, lease.lease_expires_at);
        // A bundle that had lapsed has its bandwidth back, or the renewal would have been refused.
        self.lapsed = false;
    }
}
