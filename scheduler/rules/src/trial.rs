//! One Pod tried on one Node.

use model::{ClusterNode, ClusterPod};

use crate::cluster::Cluster;
use crate::cycle::CycleState;
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::rules::Rules;

/// A Pod hypothetically added to the Node or removed from it (kube-scheduler's AddPod and RemovePod). The order matters: kube-scheduler
/// keeps its sums up to date change by change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TrialChange<'a> {
    Add(&'a ClusterPod),
    Remove(&'a ClusterPod),
}

impl<'a> TrialChange<'a> {
    /// The Pod, with 1 when it comes and −1 when it goes.
    pub fn signed(self) -> (&'a ClusterPod, i64) {
        match self {
            Self::Add(pod) => (pod, 1),
            Self::Remove(pod) => (pod, -1),
        }
    }
}

/// The question whether the Pod can be on the Node after some changes to that Node.
#[derive(Clone, Debug)]
pub(crate) struct Trial<'a> {
    pub rules: &'a Rules,
    pub cluster: &'a Cluster,
    pub pod: &'a ClusterPod,
    pub state: &'a CycleState,
    pub node: &'a ClusterNode,
    pub changes: Vec<TrialChange<'a>>,
}

impl Trial<'_> {
    /// Why not; empty when the Pod can be there. The Pod must fit both with and without the Pods
    /// that are nominated for the Node: they may come, and they may end up elsewhere.
    pub fn rejections(&self) -> Vec<Reason> {
        let mut with_nominated = self.clone();
        let name = &self.node.node.name;
        let nominated = self.cluster.nominated_before(self.pod, name).map(TrialChange::Add);
        with_nominated.changes.extend(nominated);
        let reasons = with_nominated.first_rejections();
        if !reasons.is_empty() || with_nominated.changes.len() == self.changes.len() {
            return reasons;
        }
        self.first_rejections()
    }

    /// The Pods on the Node after the changes.
    pub fn pods(&self) -> Vec<&ClusterPod> {
        let mut pods: Vec<_> = self.cluster.pods_on(&self.node.node.name).collect();
        for change in &self.changes {
            match change {
                TrialChange::Add(pod) => pods.push(pod),
                TrialChange::Remove(pod) => pods.retain(|other| other.uid != pod.uid),
            }
        }
        pods
    }

    /// The reasons of the first rule that rejects.
    fn first_rejections(&self) -> Vec<Reason> {
        let filters = Plugin::ALL.iter().filter_map(|it| Some((*it, it.registration().filter?)));
        let filters = filters.filter(|(plugin, _)| self.rules.filters_by(*plugin));
        let mut answers = filters.map(|(_, filter)| filter(self));
        answers.find(|reasons| !reasons.is_empty()).unwrap_or_default()
    }
}
