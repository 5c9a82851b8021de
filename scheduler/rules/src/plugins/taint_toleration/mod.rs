//! TaintToleration: taints that repel, and taints that prefer Pods elsewhere.

mod filter;
mod score;

use super::Point::{Filter, PreScore, Score};
use super::Registration;

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 3,
    filter: Some(filter::filter),
    score: Some(score::score),
    ..Registration::optional(&[Filter, PreScore, Score])
};
