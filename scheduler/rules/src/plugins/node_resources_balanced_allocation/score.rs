//! Prefers the Node on which the Pod evens out the use of the resources
//! (NodeResourcesBalancedAllocation, with the formula of Kubernetes 1.36).

use model::ClusterNode;

use crate::plugins::node_resources_fit::{ResourceUse, Sums, asked, resource_uses};
use crate::score::{PluginResult, SCORE_MAX, ScoreContext};

/// A Pod that requests none of the resources is not scored: it would pile up on one Node.
pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    let asked = asked(context, Sums::AsRequested);
    if context.rules.balanced_resources.iter().all(|name| asked.amount(name) == 0) {
        return PluginResult::Skipped;
    }
    PluginResult::Scored(context.each(|node| node_score(context, node)))
}

fn node_score(context: &ScoreContext<'_>, node: &ClusterNode) -> i64 {
    let names = context.rules.balanced_resources.iter();
    balanced_score(&resource_uses(context, node, names, Sums::AsRequested))
}

/// How much more even the use of the resources becomes.
pub fn balanced_score(uses: &[ResourceUse]) -> i64 {
    let with = balance(uses, |used| used.with_pod);
    let without = balance(uses, |used| used.before);
    let gained = with.saturating_sub(without);
    SCORE_MAX / 2 + (SCORE_MAX / 2).saturating_add(gained) / 2
}

/// 100 when all resources are used to the same share; less the further they are apart.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler computes in doubles too, and the result is between 0 and 100"
)]
fn balance(uses: &[ResourceUse], taken: impl Fn(&ResourceUse) -> i64) -> i64 {
    let shares: Vec<f64> =
        uses.iter().map(|used| (taken(used) as f64 / used.allocatable as f64).min(1.0)).collect();
    let deviation = match shares.as_slice() {
        [] | [_] => 0.0,
        [one, other] => ((one - other) / 2.0).abs(),
        many => {
            let count = many.len() as f64;
            let mean = many.iter().sum::<f64>() / count;
            let squares: f64 = many.iter().map(|share| (share - mean) * (share - mean)).sum();
            (squares / count).sqrt()
        }
    };
    ((1.0 - deviation) * SCORE_MAX as f64) as i64
}
