//! PodTopologySpread: Pods spread over zones, Nodes or other places.

mod constraint;
mod filter;
mod score;

use model::{SchedulingSpec, TopologySpreadConstraint, WhenUnsatisfiable};

pub use constraint::{Constraint, constraints, has_every_key, score_needs_every_key};
pub(crate) use filter::Spread;

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::{Registration, reasons};
use crate::rules::{DefaultSpread, Rules};

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 2,
    pre_filter: Some(filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    score: Some(score::score),
    looks_beyond_node: is_required,
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};

reasons! {
    PodTopologySpread:
    TOPOLOGY_SPREAD = resolvable(
        "node(s) didn't match pod topology spread constraints",
        wakes_on: "the Pods that its spread constraint counts are spread more evenly",
    ),
    TOPOLOGY_SPREAD_LABEL_MISSING = unresolvable(
        "node(s) didn't match pod topology spread constraints (missing required label)",
        wakes_on: "a node with the label that its spread constraint names",
    ),
}

/// Whether such a Pod has a constraint that keeps it off Nodes.
fn is_required(rules: &Rules, scheduling: &SchedulingSpec) -> bool {
    let is_hard =
        |it: &TopologySpreadConstraint| it.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule;
    match &rules.default_spread {
        DefaultSpread::List(defaults) if scheduling.topology_spread.is_empty() => {
            defaults.iter().any(is_hard)
        }
        _ => scheduling.topology_spread.iter().any(is_hard),
    }
}
