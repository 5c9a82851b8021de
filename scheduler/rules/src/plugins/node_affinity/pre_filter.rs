//! The Nodes that the required affinity names.

use model::NodeSelector;

use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::reason::Reason;

pub(super) fn pre_filter(
    context: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    let required = context.pod.node_affinity.required.as_ref();
    state.named = required.and_then(NodeSelector::named_nodes);
    match &state.named {
        Some(named) if named.is_empty() => {
            Err(PreFilterStatus::Rejected(Reason::NODE_NAMES_CONFLICT))
        }
        _ => Ok(()),
    }
}
