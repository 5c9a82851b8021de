//! NodeResourcesFit: room on the Node, and how much of it is left.

mod filter;
mod resource_use;
mod score;

pub use resource_use::ResourceUse;
pub(super) use resource_use::{Sums, asked, resource_uses};
pub use score::fit_score;

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::Registration;

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    score: Some(score::score),
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};
