use model::ClusterNode;

use super::super::NodeFilter;

pub(in crate::placing) fn rejects(filter: &NodeFilter, node: &ClusterNode) -> bool {
    !filter.required_features.is_subset(&node.declared_features)
}
