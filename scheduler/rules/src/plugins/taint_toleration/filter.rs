//! Taints that repel (NoSchedule, NoExecute) must all be tolerated. The reason does not name the
//! taint.

use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    unless(trial.pod.tolerates_taints_of(&trial.node.node), Reason::UNTOLERATED_TAINT)
}
