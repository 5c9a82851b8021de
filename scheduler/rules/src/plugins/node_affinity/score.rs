//! The weights of the preferred terms that the Node meets, the Pod's and the profile's.

use model::ClusterNode;

use crate::score::{PluginResult, ScoreContext, up_to_max};

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    let (own, added) = (&context.pod.node_affinity, &context.rules.added_affinity);
    if own.preferred.is_empty() && added.preferred.is_empty() {
        return PluginResult::Skipped;
    }
    if let Some(why) = own.preference_error() {
        return PluginResult::Unparsable(why.clone());
    }
    let weight = |node: &&ClusterNode| {
        let (name, labels) = (&node.node.name, &node.node.labels);
        added.preference(name, labels).saturating_add(own.preference(name, labels))
    };
    PluginResult::Scored(up_to_max(context.feasible.iter().map(weight).collect()))
}
