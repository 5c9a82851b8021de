//! Ports of the Node that the Pod wants must be free.

use crate::node_use::NodeUse;
use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let used = NodeUse::of(trial.cluster, &trial.node.node.name, &trial.changes);
    let conflict = trial.pod.host_ports.iter().any(|wanted| used.has_conflict(wanted));
    unless(!conflict, Reason::HOST_PORTS)
}
