//! The allocator: from claims and a Node to allocations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::{Allocation, DeviceClass, Node, ResourceClaim};

use super::ask::ClaimAsk;
use super::node_pools::NodePools;
use super::search::Search;
use super::{AllocationFailure, DevicePools, Selectors, TakenDevices, allocation};

/// How many devices an allocation can have.
pub const DEVICES_PER_CLAIM_MAX: usize = 32;

/// How many devices the search gives out on one Node, most of them to take them back. Nearly every solution is found
/// in as many steps as it has devices; this many take about as long as a Pod takes to be bound.
pub const STEPS_MAX: u32 = 10_000;

/// By names.
pub type DeviceClasses = BTreeMap<Arc<str>, Arc<DeviceClass>>;

/// What the allocator reads.
#[derive(Clone, Copy)]
pub struct AllocatorInput<'a> {
    pub pools: &'a DevicePools,
    pub classes: &'a DeviceClasses,
    pub selectors: &'a dyn Selectors,
    pub taken: &'a TakenDevices,
    /// [`STEPS_MAX`] if nothing else is wanted.
    pub step_limit: u32,
}

impl fmt::Debug for AllocatorInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocatorInput").finish_non_exhaustive()
    }
}

/// What each of the claims gets on the Node, in their order: all of them, or none.
///
/// None of them may be allocated, and none may be there twice. Their shares of devices have no names yet: see
/// [`super::name_shares`]. Nor is it said when they were allocated.
pub fn allocate(
    input: &AllocatorInput,
    node: &Node,
    claims: &[&ResourceClaim],
) -> Result<Vec<Allocation>, AllocationFailure> {
    let pools = NodePools::gather(input.pools, node)?;
    let asks = claims.iter().map(|claim| ClaimAsk::check(input, &pools, claim));
    let asks: Vec<_> = asks.collect::<Result<_, _>>()?;
    let Some(solution) = Search::run(input, &pools, &asks)? else {
        return Err(AllocationFailure::DoesNotFit { has_invalid_pools: pools.has_invalid() });
    };
    let each = asks.iter().enumerate();
    Ok(each
        .map(|(index, ask)| allocation::of_claim(&pools, ask, index, &solution))
        .collect::<Result<_, _>>()?)
}
