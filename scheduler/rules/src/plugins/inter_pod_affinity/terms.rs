//! When a term of pod affinity means a Pod. It depends on whose term it is.

use std::sync::Arc;

use model::{ClusterPod, Labels, PodAffinityTerm};

use crate::cluster::Cluster;

/// A term of the Pod that is being placed, held against any other Pod.
///
/// kube-scheduler turns the namespace selector into the names of the namespaces it matches, but
/// then forgets to drop the selector, and asks it again with no labels at all. So a selector that
/// matches no labels (only `NotIn` and `DoesNotExist`, or `{}`) means every namespace.
pub fn own_term_matches(
    cluster: &Cluster,
    term: &PodAffinityTerm,
    namespace: &Arc<str>,
    labels: &Labels,
) -> bool {
    let namespace_matches = || {
        let labels = cluster.objects.namespaces.get(namespace);
        labels.is_some_and(|labels| term.namespace_selector.matches(labels))
    };
    let in_reach = term.namespaces.contains(namespace)
        || namespace_matches()
        || term.namespace_selector.matches(&Labels::new());
    in_reach && term.selector.matches(labels)
}

/// A term of a Pod that is already placed, held against the Pod that is being placed. Its
/// namespace is judged by the labels it has now; one that is not known has none.
pub fn existing_term_matches(
    cluster: &Cluster,
    term: &PodAffinityTerm,
    incoming: &ClusterPod,
) -> bool {
    let none = Labels::new();
    let labels = cluster.objects.namespaces.get(incoming.namespace()).unwrap_or(&none);
    let in_reach =
        term.namespaces.contains(incoming.namespace()) || term.namespace_selector.matches(labels);
    in_reach && term.selector.matches(&incoming.labels)
}
