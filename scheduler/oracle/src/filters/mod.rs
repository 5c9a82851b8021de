//! The rules that a Node must pass. To add one: a file here and a line in [`FILTERS`].

pub(crate) mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
pub(crate) mod pod_topology_spread;
mod reach;
mod taint_toleration;

use crate::reason::Reason;
use crate::trial::Trial;

/// Every reason for which this rule rejects the Node; none when it passes.
type Filter = fn(&Trial<'_>) -> Vec<Reason>;

/// In the order of kube-scheduler: the first rule that rejects a Node supplies its reasons.
pub(crate) const FILTERS: [Filter; 10] = [
    node_unschedulable::filter,
    node_name::filter,
    taint_toleration::filter,
    node_affinity::filter,
    reach::filter,
    node_ports::filter,
    node_resources_fit::filter,
    pod_topology_spread::filter,
    inter_pod_affinity::filter,
    node_declared_features::filter,
];

fn unless(passes: bool, reason: Reason) -> Vec<Reason> {
    if passes { Vec::new() } else { vec![reason] }
}
