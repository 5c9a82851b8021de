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

use crate::reason::{Plugin, Reason};
use crate::trial::Trial;

pub(crate) struct Filter {
    pub plugin: Plugin,
    /// Every reason for which this rule rejects the Node; none when it passes.
    pub reasons: fn(&Trial<'_>) -> Vec<Reason>,
}

const fn by(plugin: Plugin, reasons: fn(&Trial<'_>) -> Vec<Reason>) -> Filter {
    Filter { plugin, reasons }
}

/// In the order of kube-scheduler: the first rule that rejects a Node supplies its reasons.
pub(crate) const FILTERS: [Filter; 10] = [
    by(Plugin::NodeUnschedulable, node_unschedulable::filter),
    by(Plugin::NodeName, node_name::filter),
    by(Plugin::TaintToleration, taint_toleration::filter),
    by(Plugin::NodeAffinity, node_affinity::filter),
    by(Plugin::Corridor, reach::filter),
    by(Plugin::NodePorts, node_ports::filter),
    by(Plugin::NodeResourcesFit, node_resources_fit::filter),
    by(Plugin::PodTopologySpread, pod_topology_spread::filter),
    by(Plugin::InterPodAffinity, inter_pod_affinity::filter),
    by(Plugin::NodeDeclaredFeatures, node_declared_features::filter),
];

fn unless(passes: bool, reason: Reason) -> Vec<Reason> {
    if passes { Vec::new() } else { vec![reason] }
}
