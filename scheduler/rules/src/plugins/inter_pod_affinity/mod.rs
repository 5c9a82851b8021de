//! InterPodAffinity: affinity and anti-affinity between Pods, in both directions.

mod filter;
mod score;
mod terms;

pub(crate) use filter::Counts;
pub use terms::{own_term_means, placed_term_means};

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::Registration;

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 2,
    pre_filter: Some(filter::pre_filter),
    filter: Some(filter::filter),
    score: Some(score::score),
    looks_beyond_node: |_, scheduling| {
        let affinity = &scheduling.pod_affinity;
        !affinity.required.is_empty() || !affinity.anti_required.is_empty()
    },
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};
