//! NodeAffinity: `nodeSelector`, the Pod's node affinity, and the affinity that the profile adds.

mod filter;
mod pre_filter;
mod score;

use super::Point::{Filter, PreFilter, PreScore, Score};
use super::{Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 2,
    pre_filter: Some(pre_filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    score: Some(score::score),
    ..Registration::optional(&[PreFilter, Filter, PreScore, Score])
};

reasons! {
    NodeAffinity:
    /// `nodeSelector` or node affinity of the Pod.
    NODE_AFFINITY = unresolvable(
        "node(s) didn't match Pod's node affinity/selector",
        wakes_on: "a node that the Pod's node selector and affinity match",
    ),
    /// The affinity that the profile adds.
    ENFORCED_NODE_AFFINITY = unresolvable(
        "node(s) didn't match scheduler-enforced node affinity",
        wakes_on: "a node that the profile's affinity matches",
    ),
    /// The Pod's affinity names Nodes, and no Node can be all of them.
    NODE_NAMES_CONFLICT = unresolvable(
        "pod affinity terms conflict",
        wakes_on: "a change of the Pod",
    ),
}
