//! `spec.nodeName`, where it is already set.

use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let requested = trial.pod.node.as_ref();
    unless(requested.is_none_or(|name| *name == trial.node.node.name), Reason::NODE_NAME)
}
