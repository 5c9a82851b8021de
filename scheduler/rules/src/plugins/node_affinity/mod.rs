//! NodeAffinity: `nodeSelector`, the Pod's node affinity, and the affinity that the profile adds.

mod filter;
mod pre_filter;
mod score;

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::Registration;

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 2,
    pre_filter: Some(pre_filter::pre_filter),
    filter: Some(filter::filter),
    score: Some(score::score),
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};
