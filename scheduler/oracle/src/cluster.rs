//! The state that a decision depends on, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    ClusterNode, ClusterPod, LabelSelector, Labels, NodeName, PodDisruptionBudget, PodUid,
};

/// A cluster at one moment. Maps, not lists: no decision can depend on the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pub nodes: BTreeMap<NodeName, ClusterNode>,
    /// Every Pod that has not ended and is on a Node, whoever put it there. Of the Pods that
    /// wait, those whose nomination is to be respected; the others change nothing.
    pub pods: BTreeMap<PodUid, ClusterPod>,
    /// The labels of each Namespace.
    pub namespaces: BTreeMap<Arc<str>, Labels>,
    pub budgets: Vec<PodDisruptionBudget>,
    /// The Services that have a selector: default spreading counts the Pods behind them.
    pub services: Vec<ServiceSelector>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSelector {
    pub namespace: Arc<str>,
    pub selector: Labels,
}

impl Cluster {
    pub fn new(
        nodes: impl IntoIterator<Item = ClusterNode>,
        pods: impl IntoIterator<Item = ClusterPod>,
    ) -> Self {
        Self {
            nodes: nodes.into_iter().map(|node| (node.node.name.clone(), node)).collect(),
            pods: pods.into_iter().map(|pod| (pod.uid.clone(), pod)).collect(),
            ..Self::default()
        }
    }

    /// Pods with the Nodes they are on. A Pod on a Node that is gone counts nowhere.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (&ClusterPod, &ClusterNode)> {
        self.pods.values().filter_map(|pod| Some((pod, self.nodes.get(pod.node.as_ref()?)?)))
    }

    pub(crate) fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &ClusterPod> {
        self.pods.values().filter(move |pod| pod.node.as_ref() == Some(node))
    }

    /// Waiting Pods that were promised the Node and that `pod` must not push aside.
    pub(crate) fn nominated_before<'a>(
        &'a self,
        pod: &'a ClusterPod,
        node: &'a NodeName,
    ) -> impl Iterator<Item = &'a ClusterPod> {
        self.pods.values().filter(move |other| {
            other.node.is_none()
                && other.nominated_node.as_ref() == Some(node)
                && other.priority >= pod.priority
                && other.uid != pod.uid
        })
    }

    /// The Pods beside which default spreading places a Pod: those of its Services and its owner.
    pub(crate) fn siblings_of(&self, pod: &ClusterPod) -> LabelSelector {
        let mut requirements = Vec::new();
        let services = self.services.iter().filter(|service| service.namespace == *pod.namespace());
        for service in services {
            let selector = LabelSelector::of_labels(&service.selector);
            if let (true, LabelSelector::All(more)) = (selector.matches(&pod.labels), selector) {
                requirements.extend(more);
            }
        }
        if let LabelSelector::All(more) = &pod.owner_selector {
            requirements.extend(more.iter().cloned());
        }
        LabelSelector::All(requirements)
    }
}
