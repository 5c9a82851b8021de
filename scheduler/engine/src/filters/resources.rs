//! Requests of all Pods on a Node stay within its allocatable resources.

use super::{Ask, Candidate, NodeReason};

/// What is not asked for is not checked, but the number of Pods always is.
pub(super) fn filter(ask: Ask<'_>, candidate: Candidate<'_>, reasons: &mut Vec<NodeReason>) {
    let Candidate { node, used } = candidate;
    if used.pods + 1 > node.pods_max {
        reasons.push(NodeReason::TooManyPods);
    }
    let (asked, has, taken) = (&ask.shape.requests, &node.allocatable, &used.requests);
    let mut check = |name: &str, asked: i64, has: i64, taken: i64| {
        if asked > 0 && asked > has.saturating_sub(taken) {
            reasons.push(NodeReason::Insufficient(name.into()));
        }
    };
    check("cpu", asked.cpu_milli, has.cpu_milli, taken.cpu_milli);
    check("memory", asked.memory_bytes, has.memory_bytes, taken.memory_bytes);
    check(
        "ephemeral-storage",
        asked.ephemeral_storage_bytes,
        has.ephemeral_storage_bytes,
        taken.ephemeral_storage_bytes,
    );
    for (name, amount) in &asked.scalar {
        check(name, *amount, has.scalar(name), taken.scalar(name));
    }
}
