//! What preemption has to respect.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, ObjectKey};

/// `spec.preemptionPolicy` of a Pod, from its PriorityClass.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum PreemptionPolicy {
    #[default]
    PreemptLowerPriority,
    Never,
}

/// A PodDisruptionBudget, as its controller has evaluated it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodDisruptionBudget {
    pub key: ObjectKey,
    pub selector: LabelSelector,
    pub disruptions_allowed: i32,
    /// Names of Pods whose disruption the API server has already counted.
    pub disrupted_pods: BTreeSet<Arc<str>>,
}

/// Whether a Pod is on its way out, and why.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Deletion {
    #[default]
    None,
    Terminating,
    /// Condition `DisruptionTarget` with reason `PreemptionByScheduler`.
    TerminatingByPreemption,
}

impl Deletion {
    pub fn is_terminating(self) -> bool {
        self != Self::None
    }
}
