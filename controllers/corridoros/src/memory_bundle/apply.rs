//! Calls that change something at memqosd.

use daemons::corrd::Lease;
use daemons::memqosd::{BandwidthChange, Bundle, BundleRequest, LatencyClassChange};
use daemons::{Owner, Released, Reply};

use super::plan::BundleChange;
use crate::context::Context;
use crate::lifecycle::not_configured;

pub(super) fn allocate<'a>(
    context: &'a Context,
    object: &'a crds::MemoryBundle,
    request: BundleRequest,
    ticket: Option<String>,
) -> Reply<'a, Bundle> {
    let Some(memqosd) = &context.backends.memqosd else {
        return not_configured("allocate bundle");
    };
    Box::pin(async move {
        let (key, ask) = (request.key(), BundleRequest { ticket, ..request });
        let bundle = memqosd.allocate(&key, &ask).await?;
        context.metrics.bundle_allocated(object);
        Ok(bundle)
    })
}

pub(super) fn release<'a>(
    context: &'a Context,
    handle: &'a str,
    owner: &'a Owner,
) -> Reply<'a, Released> {
    match &context.backends.memqosd {
        Some(memqosd) => memqosd.release(handle, owner),
        None => not_configured("release bundle"),
    }
}

pub(super) fn renew<'a>(
    context: &'a Context,
    handle: &'a str,
    owner: &'a Owner,
) -> Reply<'a, Lease> {
    match &context.backends.memqosd {
        Some(memqosd) => memqosd.renew_lease(handle, owner),
        None => not_configured("renew the lease of a bundle"),
    }
}

pub(super) fn change<'a>(
    context: &'a Context,
    handle: &'a str,
    owner: &'a Owner,
    change: &'a BundleChange,
) -> Reply<'a, ()> {
    let Some(memqosd) = &context.backends.memqosd else { return not_configured("change bundle") };
    Box::pin(async move {
        match change {
            BundleChange::Floor(floor_gbs) => {
                let change = BandwidthChange { floor_gbs: *floor_gbs };
                memqosd.set_bandwidth(handle, owner, &change).await?;
            }
            BundleChange::Class(latency_class) => {
                let change = LatencyClassChange { latency_class: *latency_class };
                let moved = memqosd.set_latency_class(handle, owner, &change).await?;
                tracing::info!(handle, pages = moved.moved_pages, "moved to another tier");
            }
        }
        Ok(())
    })
}
