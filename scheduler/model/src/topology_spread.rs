//! Topology spread constraints.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, Labels};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopologySpreadConstraint {
    pub max_skew: i32,
    pub topology_key: Arc<str>,
    pub when_unsatisfiable: WhenUnsatisfiable,
    pub selector: LabelSelector,
    /// Absent means 1.
    pub min_domains: Option<i32>,
    pub node_affinity_policy: NodeInclusionPolicy,
    pub node_taints_policy: NodeInclusionPolicy,
    pub match_label_keys: Vec<Arc<str>>,
}

impl TopologySpreadConstraint {
    /// A constraint with the policies that the API server takes for absent ones.
    pub fn new(
        topology_key: &str,
        max_skew: i32,
        when_unsatisfiable: WhenUnsatisfiable,
        selector: LabelSelector,
    ) -> Self {
        Self {
            max_skew,
            topology_key: topology_key.into(),
            when_unsatisfiable,
            selector,
            min_domains: None,
            node_affinity_policy: NodeInclusionPolicy::Honor,
            node_taints_policy: NodeInclusionPolicy::Ignore,
            match_label_keys: Vec::new(),
        }
    }

    /// The Pods counted, with `matchLabelKeys` merged in. The API server has merged them when
    /// the Pod was created; kube-scheduler merges them again, with the Pod's present labels.
    pub fn selector_for(&self, pod_labels: &Labels) -> LabelSelector {
        self.selector.with_label_keys(&self.match_label_keys, &[], pod_labels)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WhenUnsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

/// Whether Nodes on which the Pod could not be are left out of the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeInclusionPolicy {
    Honor,
    Ignore,
}
