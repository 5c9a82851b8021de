//! What people are told about a Node that has not enough devices.

use std::fmt;
use std::sync::Arc;

use model::{DeviceCount, Node, ObjectKey, ResourceClaim};

use super::ask::{Ask, ClaimAsk, Wanted, is_meant};
use super::capacity::amounts;
use super::chosen::Chosen;
use super::node_pools::{NodeDevice, NodePools, PoolState};
use super::{AllocatorInput, FatalDeviceError, PoolId, counters};

/// What a Node has for the claims of a Pod. Each request is looked at alone, as if it were the only one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceDiagnosis {
    pub requests: Vec<RequestDiagnosis>,
    /// Pools of which slices are missing.
    pub incomplete: Vec<PoolId>,
    /// Pools that contradict themselves, and how.
    pub invalid: Vec<(PoolId, String)>,
}

/// The devices of a Node that a request means. Each that is not free counts once, for the first reason that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDiagnosis {
    pub claim: ObjectKey,
    /// `request`, or `request/alternative`.
    pub request: Arc<str>,
    /// `None`: all.
    pub wanted: Option<usize>,
    pub matching: usize,
    pub free: usize,
    pub in_use: usize,
    pub tainted: usize,
    /// The counters of their pool are used up.
    pub without_counters: usize,
    /// They have less capacity than is asked for, at all or left.
    pub without_capacity: usize,
}

/// Looks at every device that the Node reaches. For explanations, not for decisions.
pub fn diagnose_devices(
    input: &AllocatorInput,
    node: &Node,
    claims: &[&ResourceClaim],
) -> Result<DeviceDiagnosis, FatalDeviceError> {
    let pools = NodePools::gather(input.pools, node)?;
    let mut diagnosis = DeviceDiagnosis::default();
    for pool in &pools.pools {
        match &pool.state {
            PoolState::Usable => {}
            PoolState::Incomplete => diagnosis.incomplete.push(pool.id.clone()),
            PoolState::Invalid(why) => diagnosis.invalid.push((pool.id.clone(), why.clone())),
        }
    }
    for claim in claims {
        let asks = ClaimAsk::check(input, &pools, claim)?;
        for ask in asks.requests.iter().flatten() {
            diagnosis.requests.push(request(input, &pools, claim, ask)?);
        }
    }
    Ok(diagnosis)
}

fn request(
    input: &AllocatorInput,
    pools: &NodePools,
    claim: &ResourceClaim,
    ask: &Ask,
) -> Result<RequestDiagnosis, FatalDeviceError> {
    let wanted = match (&ask.request.count, &ask.wanted) {
        (DeviceCount::All, _) | (_, Wanted::All(_)) => None,
        (_, Wanted::Exactly(count)) => Some(*count),
    };
    let mut diagnosis = RequestDiagnosis {
        claim: claim.key.clone(),
        request: ask.name.clone(),
        wanted,
        matching: 0,
        free: 0,
        in_use: 0,
        tainted: 0,
        without_counters: 0,
        without_capacity: 0,
    };
    for (position, device) in pools.devices.iter().enumerate() {
        if is_meant(input, pools, claim, ask.request, ask.class, device)? {
            diagnosis.matching += 1;
            *diagnosis.count_of(input, pools, ask, position, device) += 1;
        }
    }
    Ok(diagnosis)
}

impl RequestDiagnosis {
    /// Where a device counts.
    fn count_of(
        &mut self,
        input: &AllocatorInput,
        pools: &NodePools,
        ask: &Ask,
        position: usize,
        device: &NodeDevice,
    ) -> &mut usize {
        let nothing = Chosen::default();
        let tolerations = &ask.request.tolerations;
        let mut taints = device.device.taints.iter().filter(|taint| taint.repels());
        if nothing.is_in_use(input.taken, 0, ask, position, device) {
            return &mut self.in_use;
        }
        if taints.any(|taint| !tolerations.iter().any(|it| it.tolerates(taint))) {
            return &mut self.tainted;
        }
        if !counters::has_left(input.taken, pools, &nothing, ask, device) {
            return &mut self.without_counters;
        }
        let amounts = amounts(ask.request, &device.device.device_type);
        let has_left = amounts
            .is_some_and(|amounts| nothing.has_left(input.taken, ask, position, device, &amounts));
        if has_left { &mut self.free } else { &mut self.without_capacity }
    }
}

impl fmt::Display for RequestDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, request, matching, free, .. } = self;
        write!(f, "claim {claim}, request {request}: {free} of {matching} matching devices free")?;
        match self.wanted {
            Some(wanted) => write!(f, ", {wanted} wanted")?,
            None => f.write_str(", all wanted")?,
        }
        let reasons = [
            (self.tainted, "tainted"),
            (self.in_use, "in use"),
            (self.without_counters, "without counters left"),
            (self.without_capacity, "without the capacity"),
        ];
        let given = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<_> = given.map(|(count, why)| format!("{count} {why}")).collect();
        if reasons.is_empty() { Ok(()) } else { write!(f, " ({})", reasons.join(", ")) }
    }
}
