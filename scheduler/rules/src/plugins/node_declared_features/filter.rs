//! The kubelet must know every feature that the Pod depends on.

use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let declared = &trial.node.declared_features;
    unless(trial.pod.required_features.is_subset(declared), Reason::DECLARED_FEATURES)
}
