//! Requests, checked and with their classes.

use std::sync::Arc;

use model::{
    ClaimSpec, Constraint, DeviceClass, DeviceCount, DeviceRequest, DeviceSelector,
    RequestAlternatives, ResourceClaim, SubRequest,
};

use super::allocator::{AllocatorInput, DEVICES_PER_CLAIM_MAX};
use super::capacity::amounts;
use super::node_pools::{NodeDevice, NodePools, PoolState};
use super::{FatalDeviceError, selectors};

/// A claim, ready to be searched for.
#[derive(Debug)]
pub(super) struct ClaimAsk<'a> {
    pub claim: &'a ResourceClaim,
    /// The alternatives of each request.
    pub requests: Vec<Vec<Ask<'a>>>,
}

/// A request, or one of its alternatives.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    /// The name of the request, also of an alternative.
    pub base: &'a Arc<str>,
    /// `request`, or `request/alternative`.
    pub name: Arc<str>,
    pub request: &'a SubRequest,
    pub class: &'a DeviceClass,
    pub has_admin_access: bool,
    pub wanted: Wanted,
}

#[derive(Debug)]
pub(super) enum Wanted {
    Exactly(usize),
    /// These, by their places in [`NodePools::devices`], and at least one.
    All(Vec<usize>),
}

impl Ask<'_> {
    pub fn count(&self) -> usize {
        match &self.wanted {
            Wanted::Exactly(count) => *count,
            Wanted::All(devices) => devices.len(),
        }
    }

    /// Whether a constraint or configuration that names these requests means this one. `req` means each alternative of it.
    pub fn is_named_in(&self, requests: &[Arc<str>]) -> bool {
        requests.iter().any(|named| named == self.base || *named == self.name)
    }
}

impl<'a> ClaimAsk<'a> {
    pub fn check(
        input: &AllocatorInput<'a>,
        pools: &NodePools,
        claim: &'a ResourceClaim,
    ) -> Result<Self, FatalDeviceError> {
        let spec: &ClaimSpec = &claim.spec;
        let mut requests = Vec::with_capacity(spec.requests.len());
        for request in &spec.requests {
            requests.push(alternatives(input, pools, claim, request)?);
        }
        let fewest = |alternatives: &Vec<Ask>| alternatives.iter().map(Ask::count).min();
        let devices = requests.iter().filter_map(fewest).fold(0_usize, usize::saturating_add);
        let claim_key = || claim.key.clone();
        if devices > DEVICES_PER_CLAIM_MAX {
            let (claim, devices_max) = (claim_key(), DEVICES_PER_CLAIM_MAX);
            return Err(FatalDeviceError::TooManyDevices { claim, devices, devices_max });
        }
        let unknown = spec.constraints.iter().position(|it| *it == Constraint::Unknown);
        match unknown {
            Some(index) => Err(FatalDeviceError::UnknownConstraint { claim: claim_key(), index }),
            None => Ok(Self { claim, requests }),
        }
    }
}

fn alternatives<'a>(
    input: &AllocatorInput<'a>,
    pools: &NodePools,
    claim: &'a ResourceClaim,
    request: &'a DeviceRequest,
) -> Result<Vec<Ask<'a>>, FatalDeviceError> {
    let base = &request.name;
    match &request.alternatives {
        RequestAlternatives::Exactly(exactly) => {
            let name = base.clone();
            let has_admin_access = exactly.admin_access;
            let (class, wanted) = check(input, pools, claim, exactly, base)?;
            Ok(vec![Ask { base, name, request: exactly, class, has_admin_access, wanted }])
        }
        RequestAlternatives::FirstAvailable(alternatives) if !alternatives.is_empty() => {
            let ask = |request: &'a SubRequest| {
                let name = format!("{base}/{}", request.name).into();
                let (class, wanted) = check(input, pools, claim, request, &request.name)?;
                Ok(Ask { base, name, request, class, has_admin_access: false, wanted })
            };
            alternatives.iter().map(ask).collect()
        }
        RequestAlternatives::FirstAvailable(_) | RequestAlternatives::Unknown => {
            let (claim, request) = (claim.key.clone(), base.clone());
            Err(FatalDeviceError::NoClass { claim, request })
        }
    }
}

fn check<'a>(
    input: &AllocatorInput<'a>,
    pools: &NodePools,
    claim: &ResourceClaim,
    request: &SubRequest,
    name: &Arc<str>,
) -> Result<(&'a DeviceClass, Wanted), FatalDeviceError> {
    let in_claim = || (claim.key.clone(), name.clone());
    let unknown = request.selectors.iter().position(|it| *it == DeviceSelector::Unknown);
    if let Some(index) = unknown {
        let (claim, request) = in_claim();
        return Err(FatalDeviceError::UnknownSelector { claim, request, index });
    }
    if request.class.is_empty() {
        let (claim, request) = in_claim();
        return Err(FatalDeviceError::NoClass { claim, request });
    }
    let Some(class) = input.classes.get(&request.class) else {
        let ((claim, request), class) = (in_claim(), request.class.clone());
        return Err(FatalDeviceError::ClassNotFound { claim, request, class });
    };
    let wanted = match &request.count {
        // A negative count is stored by no API server.
        DeviceCount::Exact(count) => Wanted::Exactly(usize::try_from(*count).unwrap_or(0)),
        DeviceCount::All => Wanted::All(all(input, pools, claim, request, class, name)?),
        DeviceCount::Unknown(mode) => {
            let ((claim, request), mode) = (in_claim(), mode.clone());
            return Err(FatalDeviceError::UnknownMode { claim, request, mode });
        }
    };
    Ok((class, wanted))
}

/// What `All` means on this Node. What a device has left does not matter here: one that is taken fails the request.
fn all(
    input: &AllocatorInput,
    pools: &NodePools,
    claim: &ResourceClaim,
    request: &SubRequest,
    class: &DeviceClass,
    name: &Arc<str>,
) -> Result<Vec<usize>, FatalDeviceError> {
    let mut all = Vec::new();
    let mut devices = pools.devices.iter().enumerate().peekable();
    // Pool by pool: an expression that fails for a device of one is told before a later pool that cannot be used.
    for (index, pool) in pools.pools.iter().enumerate() {
        let of_pool = || (claim.key.clone(), name.clone(), pool.id.clone());
        match pool.state {
            PoolState::Usable => {}
            PoolState::Incomplete => {
                let (claim, request, pool) = of_pool();
                return Err(FatalDeviceError::PoolIncomplete { claim, request, pool });
            }
            PoolState::Invalid(_) => {
                let (claim, request, pool) = of_pool();
                return Err(FatalDeviceError::PoolInvalid { claim, request, pool });
            }
        }
        while let Some((position, device)) = devices.next_if(|(_, it)| it.pool == index) {
            if is_meant(input, pools, claim, request, class, device)?
                && amounts(request, &device.device.device_type).is_some()
            {
                all.push(position);
            }
        }
    }
    Ok(all)
}

/// Whether the class and the request mean the device, and it can be used from the Node. In this order: an expression
/// that fails for a device out of reach fails the Pod too.
pub(super) fn is_meant(
    input: &AllocatorInput,
    pools: &NodePools,
    claim: &ResourceClaim,
    request: &SubRequest,
    class: &DeviceClass,
    device: &NodeDevice,
) -> Result<bool, FatalDeviceError> {
    let device_type = &device.device.device_type;
    Ok(selectors::matches(input.selectors, claim, request, class, device_type)?
        && device.is_reached_from(pools.node)?)
}
