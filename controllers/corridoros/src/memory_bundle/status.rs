//! Pure: the health of a bundle, and the status of its MemoryBundle.

use crds::MemoryBundleStatus;
use crds::condition::not_ready;
use daemons::memqosd::{Bundle, BundleTelemetry};
use daemons::units;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Bundles;
use super::plan::BundleChange;
use crate::lifecycle::{
    Damping, DriverFields, Health, SharedStatus, StatusBase, StatusStep, Use, reading_moved,
};
use crate::settings::Settings;

/// Readings are written again when they moved by more than this part.
const BANDWIDTH_DEADBAND: f64 = 0.05;
const TAIL_DEADBAND: f64 = 0.5;

/// What is remembered to judge a bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Signals {
    floor: Damping,
}

impl StatusStep for Bundles {
    fn shared(status: &MemoryBundleStatus) -> SharedStatus<'_> {
        SharedStatus {
            phase: status.phase,
            generation: status.observed_generation,
            handle: status.ffm_handle.as_deref(),
            size: status.size.as_deref(),
            floor: status.floor_gbs,
            measured: status.achieved_gbs,
            has_reading: status.achieved_gbs.is_some(),
            attestation_expires_at: status.attestation_expires_at.as_ref(),
            used: Use { count: status.in_use, pods: &status.in_use_by },
            conditions: &status.conditions,
        }
    }

    fn driver_fields(status: &mut MemoryBundleStatus) -> DriverFields<'_> {
        let MemoryBundleStatus { in_use, in_use_by, conditions, .. } = status;
        DriverFields { in_use, in_use_by, conditions }
    }

    fn floor(object: &crds::MemoryBundle, status: &MemoryBundleStatus) -> f64 {
        status.floor_gbs.unwrap_or_else(|| f64::from(object.spec.bandwidth_floor_gbs))
    }

    fn readings_moved(old: &MemoryBundleStatus, next: &MemoryBundleStatus, floor: f64) -> bool {
        let gbs = |old: f64, next: f64| (next - old).abs() > floor * BANDWIDTH_DEADBAND;
        let tail = |old: f64, next: f64| (next - old).abs() > old.abs() * TAIL_DEADBAND;
        reading_moved(old.achieved_gbs, next.achieved_gbs, gbs)
            || reading_moved(old.tail_p99_ms, next.tail_p99_ms, tail)
            || (next.moved_pages.is_some() && old.moved_pages != next.moved_pages)
    }

    /// Samples without a floor count as current.
    fn is_current(allocation: &Bundle, sample: &BundleTelemetry) -> bool {
        sample.floor_gbs == 0 || sample.floor_gbs == allocation.memory.floor_gbs
    }

    /// Capacity applies at the first sample; the floor is the one memqosd confirmed.
    fn judge(
        _: &crds::MemoryBundle,
        allocation: &Bundle,
        sample: Option<&BundleTelemetry>,
        signals: &mut Signals,
        settings: &Settings,
        now: Timestamp,
    ) -> Health<BundleChange> {
        let achieved = sample.map_or(allocation.achieved_gbs, |it| it.achieved_gbs);
        let floor = allocation.memory.floor_gbs;
        // A sample is newer than the list, which may be half an hour old.
        let is_lapsed = sample.map_or(allocation.lapsed, |it| it.lapsed);
        let of = (allocation.ffm_handle.as_str(), floor);
        let is_below = is_lapsed || achieved < f64::from(floor);
        let state = signals.floor.judge(of, is_below, settings.floor_dwell, now);
        let fault = state.fault(not_ready::BELOW_FLOOR, || {
            if is_lapsed {
                "its lease lapsed; bandwidth returns with the next renewal".to_owned()
            } else {
                format!("{achieved} of {floor} GB/s")
            }
        });
        Health { fault, recheck_after: state.recheck_after(), ..Health::default() }
    }

    fn status(
        allocation: Option<&Bundle>,
        sample: Option<&BundleTelemetry>,
        base: StatusBase,
    ) -> MemoryBundleStatus {
        let StatusBase { phase, generation, conditions, attestation_expires_at } = base;
        let sample = sample.filter(|_| allocation.is_some());
        // The daemon counts all pages since the allocation; the larger count is the later one.
        let moved = allocation.map(|it| it.moved_pages.max(sample.map_or(0, |it| it.moved_pages)));
        MemoryBundleStatus {
            phase: Some(phase),
            observed_generation: Some(generation),
            ffm_handle: allocation.map(|it| it.ffm_handle.clone()),
            size: allocation.map(|it| units::binary(it.memory.bytes)),
            achieved_gbs: sample.map(|it| it.achieved_gbs).or(allocation.map(|it| it.achieved_gbs)),
            floor_gbs: allocation.map(|it| f64::from(it.memory.floor_gbs)),
            moved_pages: moved.map(|it| i64::try_from(it).unwrap_or(i64::MAX)),
            tail_p99_ms: sample.and_then(|it| it.tail_p99_ms),
            attestation_expires_at: attestation_expires_at.map(Time),
            // Written by the driver.
            in_use: None,
            in_use_by: Vec::new(),
            conditions,
        }
    }

    fn status_unknown(object: &crds::MemoryBundle, base: StatusBase) -> MemoryBundleStatus {
        let old = object.status.clone().unwrap_or_default();
        MemoryBundleStatus {
            ffm_handle: old.ffm_handle,
            size: old.size,
            achieved_gbs: old.achieved_gbs,
            floor_gbs: old.floor_gbs,
            moved_pages: old.moved_pages,
            tail_p99_ms: old.tail_p99_ms,
            ..Self::status(None, None, base)
        }
    }
}
