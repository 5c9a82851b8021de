//! The judge of wake-ups.

use std::collections::BTreeSet;

use model::{ClusterPod, NodeName};

use crate::cluster::Cluster;
use crate::decide::{Decision, decide};
use crate::preemption::preempt_after;
use crate::rules::Rules;

/// Whether a Pod that was rejected in `before` is worth another attempt in `after`: a Node takes
/// it that did not, or preemption can make room on a Node where it could not.
pub fn rejection_may_have_changed(
    rules: &Rules,
    before: &Cluster,
    after: &Cluster,
    pod: &ClusterPod,
) -> bool {
    let (before, after) = (Chances::of(rules, before, pod), Chances::of(rules, after, pod));
    let is_new = |now: &BTreeSet<NodeName>, then: &BTreeSet<NodeName>| !now.is_subset(then);
    is_new(&after.feasible, &before.feasible) || is_new(&after.preemptible, &before.preemptible)
}

/// The Nodes that take the Pod, and those that would after a preemption.
#[derive(Default)]
struct Chances {
    feasible: BTreeSet<NodeName>,
    preemptible: BTreeSet<NodeName>,
}

impl Chances {
    fn of(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Self {
        match decide(rules, cluster, pod) {
            Decision::Placed(placement) => Self { feasible: placement.feasible, ..Self::default() },
            Decision::Rejected(rejection) => {
                let preemption = preempt_after(rules, cluster, pod, &rejection);
                let nodes = preemption.candidates().into_iter().flatten();
                let preemptible = nodes.map(|(name, _)| name.clone()).collect();
                Self { preemptible, ..Self::default() }
            }
            Decision::Failed(_) => Self::default(),
        }
    }
}
