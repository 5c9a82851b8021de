//! What memory does: pure functions of seed, bundle and time. Simulated; the magnitudes are
//! plausible, not measured.

use jiff::Timestamp;

use super::noise::Noise;
use super::records::BundleRecord;
use crate::memqosd::{BundleTelemetry, LatencyClass};

pub(super) const PAGE_BYTES: u64 = 4096;

/// One sample of a bundle.
pub(super) fn sample(
    seed: u64,
    record: &BundleRecord,
    qos_violations: u64,
    now: Timestamp,
) -> BundleTelemetry {
    BundleTelemetry {
        ffm_handle: record.handle.clone(),
        owner: record.owner.clone(),
        sampled_at: now,
        achieved_gbs: achieved_gbs(seed, record, now),
        floor_gbs: record.memory.floor_gbs,
        latency_class: record.memory.latency_class,
        moved_pages: record.moved_pages,
        tail_p99_ms: Some(tail_p99_ms(seed, record, now)),
        qos_violations,
        lapsed: record.lapsed,
    }
}

/// A healthy bundle gets a little more than its floor.
pub(super) fn achieved_gbs(seed: u64, record: &BundleRecord, now: Timestamp) -> f64 {
    if record.lapsed {
        return 0.0;
    }
    let healthy = || {
        let noise = Noise::new(seed, &record.handle, "GBs").at(seconds(now), 60.0);
        f64::from(record.memory.floor_gbs) * (1.02 + 0.06 * noise)
    };
    let achieved = record.forced.achieved_gbs.unwrap_or_else(healthy);
    (achieved.max(0.0) * 1000.0).round() / 1000.0
}

fn tail_p99_ms(seed: u64, record: &BundleRecord, now: Timestamp) -> f64 {
    if let Some(forced) = record.forced.tail_p99_ms {
        return forced;
    }
    let typical_ms = match record.memory.latency_class {
        LatencyClass::T0 => 0.002,
        LatencyClass::T1 => 0.004,
        LatencyClass::T2 => 0.012,
        LatencyClass::T3 => 0.350,
    };
    let noise = Noise::new(seed, &record.handle, "p99").at(seconds(now), 30.0);
    let tail = typical_ms * (1.0 + noise);
    (tail * 1e6).round() / 1e6
}

fn seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}
