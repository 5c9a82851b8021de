//! Fewer taints that prefer the Pod elsewhere and that it does not tolerate.

use model::{ClusterNode, Effect};

use crate::score::{PluginResult, SCORE_MAX, ScoreContext, Scores, up_to_max};

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    let counts = context.feasible.iter().map(|node| untolerated(context, node)).collect();
    let Scores { raw, normalised } = up_to_max(counts);
    let reversed = normalised.iter().map(|score| SCORE_MAX - score).collect();
    PluginResult::Scored(Scores { raw, normalised: reversed })
}

fn untolerated(context: &ScoreContext<'_>, node: &ClusterNode) -> i64 {
    let tolerations = &context.pod.tolerations;
    let preferences = node.node.taints.iter().filter(|it| it.effect == Effect::PreferNoSchedule);
    let untolerated = preferences.filter(|taint| !tolerations.iter().any(|it| it.tolerates(taint)));
    i64::try_from(untolerated.count()).unwrap_or(i64::MAX)
}
