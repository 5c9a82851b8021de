//! How early the alternatives stand that the claims get on the Node.

use model::{Allocation, ClusterNode, ResourceClaim};

use super::pre_filter::device_claims;
use crate::devices::{allocate, allocation_score};
use crate::score::{PluginResult, ScoreContext, up_to_max};

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    if context.pod.resource_claims.is_empty() {
        return PluginResult::Skipped;
    }
    let Ok(claims) = device_claims(context.cluster, context.pod) else {
        return PluginResult::Skipped;
    };
    if claims.is_empty() {
        return PluginResult::Skipped;
    }
    let allocated = claims.allocated.iter();
    let allocated = allocated.filter_map(|it| Some(score_of(it, it.allocation.as_deref()?)));
    let of_allocated: i64 = allocated.sum();
    let to_allocate: Vec<&ResourceClaim> = claims.to_allocate.iter().map(|it| &**it).collect();
    let input = context.cluster.allocator_input();
    let on = |node: &&ClusterNode| {
        let found = allocate(&input, &node.node, &to_allocate).unwrap_or_default();
        let of_found = to_allocate.iter().zip(&found).map(|(claim, it)| score_of(claim, it));
        of_allocated + of_found.sum::<i64>()
    };
    PluginResult::Scored(up_to_max(context.feasible.iter().map(on).collect()))
}

pub(super) fn score_of(claim: &ResourceClaim, allocation: &Allocation) -> i64 {
    allocation_score(&claim.spec, allocation)
}
