//! How much of the Node is left, or used, by the profile's scoring strategy.

use model::ClusterNode;

use super::resource_use::{ResourceUse, Sums, resource_uses};
use crate::rules::{ScoringStrategy, ShapePoint};
use crate::score::{PluginResult, SCORE_MAX, ScoreContext, scaled};

/// Shapes are written on a scale of 0–10.
const SHAPE_SCORE_MAX: i64 = 10;

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    PluginResult::Scored(context.each(|node| node_score(context, node)))
}

fn node_score(context: &ScoreContext<'_>, node: &ClusterNode) -> i64 {
    let strategy = &context.rules.fit;
    let resources = strategy.resources();
    let names = resources.iter().map(|it| &it.resource);
    fit_score(strategy, &resource_uses(context, node, names, Sums::WithDefaults))
}

/// By the resources that count on a Node.
pub fn fit_score(strategy: &ScoringStrategy, uses: &[ResourceUse]) -> i64 {
    let resources = strategy.resources();
    let weighted = uses.iter().map(|used| (one(strategy, used), resources[used.index].weight));
    match strategy {
        ScoringStrategy::LeastAllocated(_) | ScoringStrategy::MostAllocated(_) => {
            let (sum, weights) = sums(weighted);
            sum.checked_div(weights).unwrap_or(0)
        }
        ScoringStrategy::RequestedToCapacityRatio { .. } => {
            let (sum, weights) = sums(weighted.filter(|(score, _)| *score > 0));
            rounded_mean(sum, weights)
        }
    }
}

fn one(strategy: &ScoringStrategy, used: &ResourceUse) -> i64 {
    let ResourceUse { allocatable, with_pod, .. } = *used;
    match strategy {
        ScoringStrategy::LeastAllocated(_) if with_pod > allocatable => 0,
        ScoringStrategy::LeastAllocated(_) => {
            scaled(allocatable.saturating_sub(with_pod), allocatable)
        }
        ScoringStrategy::MostAllocated(_) => scaled(with_pod.min(allocatable), allocatable),
        ScoringStrategy::RequestedToCapacityRatio { shape, .. } if with_pod > allocatable => {
            on_curve(shape, 100)
        }
        ScoringStrategy::RequestedToCapacityRatio { shape, .. } => {
            on_curve(shape, scaled(with_pod, allocatable))
        }
    }
}

fn sums(weighted: impl Iterator<Item = (i64, i64)>) -> (i64, i64) {
    weighted.fold((0, 0), |(sum, weights), (score, weight): (i64, i64)| {
        (sum.saturating_add(score.saturating_mul(weight)), weights.saturating_add(weight))
    })
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler divides as doubles too, and the mean is between 0 and 100"
)]
fn rounded_mean(sum: i64, weights: i64) -> i64 {
    if weights == 0 { 0 } else { (sum as f64 / weights as f64).round() as i64 }
}

/// The value of the curve at a utilization in percent: straight between its points, level
/// before the first and after the last.
fn on_curve(shape: &[ShapePoint], percent: i64) -> i64 {
    let point = |at: &ShapePoint| {
        let score = i64::from(at.score).saturating_mul(SCORE_MAX / SHAPE_SCORE_MAX);
        (i64::from(at.utilization), score)
    };
    let Some(after) = shape.iter().position(|at| percent <= i64::from(at.utilization)) else {
        return shape.last().map_or(0, |last| point(last).1);
    };
    let (end, end_score) = point(&shape[after]);
    let Some(before) = after.checked_sub(1) else { return end_score };
    let (start, start_score) = point(&shape[before]);
    let risen = (end_score - start_score).saturating_mul(percent.saturating_sub(start));
    start_score.saturating_add(risen.checked_div(end - start).unwrap_or(0))
}
