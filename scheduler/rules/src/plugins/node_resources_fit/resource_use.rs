//! How full each resource of a Node is, for the two rules that look at it.

use std::sync::Arc;

use model::{ClusterNode, Resources, is_scalar_resource};

use crate::node_use::NodeUse;
use crate::score::ScoreContext;

/// A resource that counts on the Node.
#[derive(Clone, Copy, Debug)]
pub struct ResourceUse {
    /// Its place in the configured list.
    pub index: usize,
    pub allocatable: i64,
    pub before: i64,
    pub with_pod: i64,
}

/// Which sums a rule looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sums {
    /// With defaults for CPU and memory that are not listed.
    WithDefaults,
    AsRequested,
}

/// The resources that the Node has. Devices count only when the Pod asks for them.
pub(crate) fn resource_uses<'a>(
    context: &ScoreContext<'_>,
    node: &ClusterNode,
    names: impl Iterator<Item = &'a Arc<str>>,
    sums: Sums,
) -> Vec<ResourceUse> {
    let used = NodeUse::of(context.cluster, &node.node.name, &[]);
    let asked = asked(context, sums);
    let mut found = Vec::new();
    for (index, name) in names.enumerate() {
        let wanted = asked.amount(name);
        let allocatable = node.node.allocatable.amount(name);
        if allocatable == 0 || wanted == 0 && is_scalar_resource(name) {
            continue;
        }
        let defaulted = sums == Sums::WithDefaults && matches!(name.as_ref(), "cpu" | "memory");
        let before =
            if defaulted { &used.requested_in_scores } else { &used.requested }.amount(name);
        let with_pod = before.saturating_add(wanted);
        found.push(ResourceUse { index, allocatable, before, with_pod });
    }
    found
}

pub(crate) fn asked<'a>(context: &ScoreContext<'a>, sums: Sums) -> &'a Resources {
    match sums {
        Sums::WithDefaults => &context.pod.requests.asked_in_scores,
        Sums::AsRequested => &context.pod.requests.effective,
    }
}
