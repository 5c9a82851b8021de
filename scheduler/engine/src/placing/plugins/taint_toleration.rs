use model::{ClusterNode, Effect};
use rules::{Reason, Rules};

use super::super::NodeFilter;
use super::super::normalizer::{Span, share};

pub(in crate::placing) fn rejects(
    filter: &NodeFilter,
    node: &ClusterNode,
    _: &Rules,
) -> Vec<Reason> {
    let untolerated = model::first_untolerated(&node.node.taints, &filter.tolerations);
    untolerated.map(|_| Reason::UNTOLERATED_TAINT).into_iter().collect()
}

/// Taints that prefer the Pod elsewhere and that it does not tolerate.
pub(in crate::placing) fn raw(filter: &NodeFilter, node: &ClusterNode) -> i64 {
    let unwanted = node.node.taints.iter().filter(|taint| {
        taint.effect == Effect::PreferNoSchedule
            && !filter.tolerations.iter().any(|it| it.tolerates(taint))
    });
    i64::try_from(unwanted.count()).unwrap_or(i64::MAX)
}

/// The fewest get 100.
pub(in crate::placing) fn normalize(span: Span, taints: i64) -> i64 {
    100 - if span.highest <= 0 { 0 } else { share(taints, span.highest) }
}
