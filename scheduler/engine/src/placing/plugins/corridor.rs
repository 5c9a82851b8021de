use model::ClusterNode;
use rules::{Reason, Rules};

use super::super::NodeFilter;

pub(in crate::placing) fn rejects(
    filter: &NodeFilter,
    node: &ClusterNode,
    _: &Rules,
) -> Vec<Reason> {
    let beyond = filter.reach.iter().filter(|it| !node.node.matches(&it.node_selector));
    beyond.map(|it| Reason::OutOfReach { object: it.object.clone() }).collect()
}
