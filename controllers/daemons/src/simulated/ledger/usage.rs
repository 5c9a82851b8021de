//! How much of the pools is given away.

use crate::corrd::PathSpec;
use crate::memqosd::{BundleSpec, LatencyClass};
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::config::{Pools, TierPool};
use crate::units;

/// Running sums over all allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::simulated) struct Usage {
    pub lanes: u64,
    pub gbps: u64,
    /// T0 to T3.
    pub tiers: [TierUsage; 4],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::simulated) struct TierUsage {
    pub bytes: u64,
    pub gbs: u64,
}

impl Usage {
    pub(super) fn take_path(&mut self, path: &PathSpec) {
        self.lanes += u64::from(path.lanes);
        self.gbps += u64::from(path.min_gbps);
    }

    pub(super) fn return_path(&mut self, path: &PathSpec) {
        self.lanes -= u64::from(path.lanes);
        self.gbps -= u64::from(path.min_gbps);
    }

    pub(super) fn take_memory(&mut self, memory: &BundleSpec, lapsed: bool) {
        let tier = &mut self.tiers[memory.latency_class as usize];
        tier.bytes += memory.bytes;
        tier.gbs += floor(memory, lapsed);
    }

    pub(super) fn return_memory(&mut self, memory: &BundleSpec, lapsed: bool) {
        let tier = &mut self.tiers[memory.latency_class as usize];
        tier.bytes -= memory.bytes;
        tier.gbs -= floor(memory, lapsed);
    }

    /// Whether everything taken is there to be given.
    pub(super) fn check_paths(&self, pools: &Pools) -> Result<(), Refusal> {
        let lanes = (RefusalReason::PoolLanes, "lanes", self.lanes, pools.lanes);
        let gbps = (RefusalReason::PoolGbps, "Gbps", self.gbps, pools.gbps);
        check(lanes).and(check(gbps))
    }

    pub(super) fn check_tier(&self, class: LatencyClass, pools: &Pools) -> Result<(), Refusal> {
        let index = class as usize;
        let (TierUsage { bytes, gbs }, pool) = (self.tiers[index], pools.tiers[index]);
        let TierPool { bytes: bytes_max, gbs: gbs_max } = pool;
        if bytes > bytes_max {
            let (short, all) = (units::binary(bytes - bytes_max), units::binary(bytes_max));
            let message = format!("short by {short} of {all} of the tier");
            return Err(Refusal::new(RefusalReason::PoolBytes, message));
        }
        check((RefusalReason::PoolBandwidth, "GB/s of the tier", gbs, gbs_max))
    }
}

/// A lapsed bundle keeps its bytes, not its bandwidth.
fn floor(memory: &BundleSpec, lapsed: bool) -> u64 {
    if lapsed { 0 } else { u64::from(memory.floor_gbs) }
}

fn check((reason, what, taken, pool): (RefusalReason, &str, u64, u64)) -> Result<(), Refusal> {
    if taken <= pool {
        return Ok(());
    }
    let message = format!("short by {} of {pool} {what}", taken - pool);
    Err(Refusal::new(reason, message))
}
