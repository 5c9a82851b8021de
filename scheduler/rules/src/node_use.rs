//! What the Pods on a Node take of it.

use std::collections::BTreeSet;

use model::{ClusterPod, HostPort, Resources};

use crate::cluster::Cluster;
use crate::trial::TrialChange;

/// The sums over the Pods on one Node, kept as kube-scheduler keeps them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeUse {
    pub pods: i64,
    pub requested: Resources,
    pub requested_in_scores: Resources,
    /// A set without counts, as in kube-scheduler: when two Pods hold the same port, taking one
    /// of them away frees it.
    ports: BTreeSet<HostPort>,
}

impl NodeUse {
    pub fn of(cluster: &Cluster, node: &model::NodeName, changes: &[TrialChange<'_>]) -> Self {
        let mut used = Self::default();
        for pod in cluster.pods_on(node) {
            used.add(pod);
        }
        for change in changes {
            match change {
                TrialChange::Add(pod) => used.add(pod),
                TrialChange::Remove(pod) => used.remove(pod),
            }
        }
        used
    }

    pub fn has_conflict(&self, wanted: &HostPort) -> bool {
        self.ports.iter().any(|taken| taken.conflicts_with(wanted))
    }

    fn add(&mut self, pod: &ClusterPod) {
        self.pods = self.pods.saturating_add(1);
        self.requested.add(&pod.requests.effective);
        self.requested_in_scores.add(&pod.requests.effective_in_scores);
        self.ports.extend(pod.host_ports.iter().cloned());
    }

    fn remove(&mut self, pod: &ClusterPod) {
        self.pods = self.pods.saturating_sub(1);
        self.requested.sub(&pod.requests.effective);
        self.requested_in_scores.sub(&pod.requests.effective_in_scores);
        for port in &pod.host_ports {
            self.ports.remove(port);
        }
    }
}
