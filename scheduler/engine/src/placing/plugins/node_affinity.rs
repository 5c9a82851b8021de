use model::ClusterNode;
use rules::{Reason, Rules};

use super::super::NodeFilter;
use super::super::normalizer::{Span, share};

pub(in crate::placing) fn is_not_named(
    filter: &NodeFilter,
    node: &ClusterNode,
    _: &Rules,
) -> Vec<Reason> {
    match &filter.named {
        Some(named) if !named.contains(&node.node.name) => {
            vec![Reason::NotNamed { nominated_node_rejected_by: None }]
        }
        _ => Vec::new(),
    }
}

pub(in crate::placing) fn rejects(
    filter: &NodeFilter,
    node: &ClusterNode,
    rules: &Rules,
) -> Vec<Reason> {
    let node = &node.node;
    let added = rules.added_affinity.required.as_ref();
    if added.is_some_and(|selector| !selector.matches(&node.name, &node.labels)) {
        return vec![Reason::ENFORCED_NODE_AFFINITY];
    }
    let required = filter.node_affinity.required.as_ref();
    let accepts = node.matches(&filter.node_selector)
        && required.is_none_or(|selector| selector.matches(&node.name, &node.labels));
    if accepts { Vec::new() } else { vec![Reason::NODE_AFFINITY] }
}

/// The weights of the preferences that the Node meets.
pub(in crate::placing) fn raw(filter: &NodeFilter, node: &ClusterNode, rules: &Rules) -> i64 {
    let (name, labels) = (&node.node.name, &node.node.labels);
    let added = rules.added_affinity.preference(name, labels);
    added.saturating_add(filter.node_affinity.preference(name, labels))
}

/// The highest gets 100. All that are not positive stay as they are.
pub(in crate::placing) fn normalize(span: Span, preference: i64) -> i64 {
    if span.highest <= 0 { preference } else { share(preference, span.highest) }
}
