//! NodeResourcesFit: room on the Node, and how much of it is left.

mod filter;
mod resource_use;
mod score;

pub use resource_use::ResourceUse;
pub(super) use resource_use::{Sums, asked, resource_uses};
pub use score::fit_score;

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::{Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    reasons: REASONS,
    score: Some(score::score),
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};

reasons! {
    NodeResourcesFit:
    TOO_MANY_PODS = resolvable(
        "Too many pods",
        wakes_on: "a Pod leaves a node that has no place for another",
    ),
}
