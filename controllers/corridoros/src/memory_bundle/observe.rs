//! A MemoryBundle and its memory at memqosd, as a reconcile sees them.

use daemons::corrd::Lease;
use daemons::memqosd::{Bundle, BundleTelemetry, Memqosd};
use daemons::{Owner, Reply};
use jiff::Timestamp;

use super::Bundles;
use crate::lifecycle::{Allocation, ObserveStep, Observed, Use};

impl ObserveStep for Bundles {
    fn observed(object: &crds::MemoryBundle) -> Observed {
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

    fn list<'a>(memqosd: &'a dyn Memqosd, owner_prefix: &'a str) -> Reply<'a, Vec<Bundle>> {
        memqosd.list(owner_prefix)
    }

    fn get<'a>(memqosd: &'a dyn Memqosd, id: &'a str) -> Reply<'a, Option<Bundle>> {
        memqosd.get(id)
    }

    fn telemetry<'a>(memqosd: &'a dyn Memqosd, id: &'a str) -> Reply<'a, Option<BundleTelemetry>> {
        memqosd.telemetry(id)
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
