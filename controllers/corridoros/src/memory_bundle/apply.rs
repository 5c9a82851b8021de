//! Calls that change something at memqosd.

use daemons::Reply;
use daemons::memqosd::{BandwidthChange, LatencyClassChange, Memqosd};

use super::Bundles;
use super::plan::BundleChange;
use crate::lifecycle::{ApplyStep, Target};

impl ApplyStep for Bundles {
    fn apply_change<'a>(
        memqosd: &'a dyn Memqosd,
        target: Target<'a, crds::MemoryBundle>,
        change: &'a BundleChange,
    ) -> Reply<'a, ()> {
        Box::pin(async move {
            let (handle, owner) = (target.id, target.owner);
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
}
