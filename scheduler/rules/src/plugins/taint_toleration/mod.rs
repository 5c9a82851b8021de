//! TaintToleration: taints that repel, and taints that prefer Pods elsewhere.

mod filter;
mod score;

use super::Point::{Filter, PreScore, Score};
use super::{Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 3,
    filter: Some(filter::filter),
    reasons: REASONS,
    score: Some(score::score),
    ..Registration::optional(&[Filter, PreScore, Score])
};

reasons! {
    TaintToleration:
    UNTOLERATED_TAINT = unresolvable(
        "node(s) had untolerated taint(s)",
        wakes_on: "a taint that the Pod does not tolerate is taken from a node",
    ),
}
