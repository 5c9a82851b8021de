//! The devices of allocated claims can be used from the Node, and those that have none get some there.

use model::{ClusterNode, ResourceClaim};

use super::DeviceProblem;
use crate::devices::{AllocationFailure, allocate};
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let claims = &trial.state.device_claims;
    if claims.is_empty() {
        return Vec::new();
    }
    let to_allocate: Vec<&ResourceClaim> = claims.to_allocate.iter().map(|it| &**it).collect();
    if !to_allocate.is_empty() {
        let input = trial.cluster.allocator_input();
        if let Err(failure) = allocate(&input, &trial.node.node, &to_allocate) {
            return vec![reason(failure)];
        }
    }
    let is_within_reach = |claim: &ResourceClaim| is_available(claim, trial.node);
    if claims.allocated.iter().all(|claim| is_within_reach(claim)) {
        Vec::new()
    } else {
        vec![Reason::CLAIM_NOT_AVAILABLE]
    }
}

/// Whether the devices of an allocated claim can be used from the Node, and are being made ready or are.
fn is_available(claim: &ResourceClaim, node: &ClusterNode) -> bool {
    let Some(allocation) = &claim.allocation else { return false };
    let is_within_reach = allocation.nodes.as_ref().is_none_or(|nodes| nodes.matches(&node.node));
    is_within_reach && claim.failed_device().is_none()
}

pub(super) fn reason(failure: AllocationFailure) -> Reason {
    match failure {
        AllocationFailure::DoesNotFit { has_invalid_pools: false } => {
            Reason::CANNOT_ALLOCATE_CLAIMS
        }
        AllocationFailure::DoesNotFit { has_invalid_pools: true } => Reason::INVALID_POOLS,
        AllocationFailure::StepLimit { claim, .. } => {
            Reason::Devices(DeviceProblem::SearchLimit { claim })
        }
        AllocationFailure::Fatal(error) => {
            Reason::Failed { plugin: Plugin::DynamicResources, why: error.to_string().into() }
        }
    }
}
