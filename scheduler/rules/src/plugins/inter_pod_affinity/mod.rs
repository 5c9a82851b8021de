//! InterPodAffinity: affinity and anti-affinity between Pods, in both directions.

mod filter;
mod score;
mod terms;

pub(crate) use filter::Counts;
pub use terms::{existing_term_matches, own_term_matches};

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::{Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 2,
    pre_filter: Some(filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    score: Some(score::score),
    looks_beyond_node: |_, scheduling| {
        let affinity = &scheduling.pod_affinity;
        !affinity.required.is_empty() || !affinity.anti_required.is_empty()
    },
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};

reasons! {
    InterPodAffinity:
    POD_AFFINITY = unresolvable(
        "node(s) didn't match pod affinity rules",
        wakes_on: "a Pod that its affinity names comes to a node",
    ),
    POD_ANTI_AFFINITY = resolvable(
        "node(s) didn't match pod anti-affinity rules",
        wakes_on: "a Pod that its anti-affinity names leaves",
    ),
    EXISTING_PODS_ANTI_AFFINITY = resolvable(
        "node(s) didn't satisfy existing pods anti-affinity rules",
        wakes_on: "a Pod whose anti-affinity keeps it away leaves",
    ),
}
