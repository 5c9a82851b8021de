//! Why a Pod cannot be placed now. A rejection carries its own wake-up, so that holding a
//! Pod and releasing it cannot drift apart.

use std::collections::BTreeMap;
use std::fmt;

use model::{CorridorPhase, FailurePolicy, Gbps, Hold, NodeName, ObjectKey};

use crate::filters::NodeReason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Something in the Pod itself.
    Pod(Hold),
    Corridor(CorridorRejection),
    Nodes(NodesRejection),
    /// Our own code failed on this Pod; the others go on without it.
    Quarantined,
}

/// What may let a rejected Pod pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeOn {
    /// The Pod itself changes.
    PodChange,
    /// The corridor can promise this much more than it does.
    CorridorFree {
        corridor: ObjectKey,
        at_least: Gbps,
    },
    CorridorSpecChange {
        corridor: ObjectKey,
    },
    CorridorSpecChangeOrReady {
        corridor: ObjectKey,
    },
    /// A Node comes or changes so that the Pod fits.
    NodeFits,
}

impl fmt::Display for WakeOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PodChange => f.write_str("a change of the Pod"),
            Self::CorridorFree { corridor, at_least } if at_least.is_zero() => {
                write!(f, "corridor {corridor} meets its floor")
            }
            Self::CorridorFree { corridor, at_least } => {
                write!(f, "{at_least} Gbps free on corridor {corridor}")
            }
            Self::CorridorSpecChange { corridor } => {
                write!(f, "a spec change of corridor {corridor}")
            }
            Self::CorridorSpecChangeOrReady { corridor } => {
                write!(f, "a spec change of corridor {corridor}, or it enters Ready")
            }
            Self::NodeFits => f.write_str("a node on which the Pod fits"),
        }
    }
}

impl Rejection {
    pub fn wake_on(&self) -> WakeOn {
        match self {
            Self::Pod(_) | Self::Quarantined => WakeOn::PodChange,
            Self::Corridor(rejection) => rejection.wake_on(),
            Self::Nodes(_) => WakeOn::NodeFits,
        }
    }

    /// The message of the Pod's condition, in the form that users of kube-scheduler know.
    pub fn message(&self, nodes_total: usize) -> String {
        match self {
            Self::Pod(hold) => hold.to_string(),
            Self::Quarantined => "the scheduler failed on this Pod and has set it aside; \
                                  change or re-create the Pod to have it tried again"
                .to_owned(),
            Self::Corridor(rejection) => {
                let prefix = match rejection.policy {
                    FailurePolicy::Queue => "",
                    FailurePolicy::FailFast => "FailFast: ",
                };
                format!("{prefix}0/{nodes_total} nodes are available: {rejection}.")
            }
            Self::Nodes(_) if nodes_total == 0 => "no nodes available to schedule pods".to_owned(),
            Self::Nodes(rejection) => format!("0/{nodes_total} nodes are available: {rejection}."),
        }
    }

    /// Equal for two rejections that differ only in live figures: a condition is
    /// rewritten when this changes, not with every Gbps.
    pub fn class(&self) -> Class {
        match self {
            Self::Pod(hold) => Class::Pod(hold.to_string()),
            Self::Quarantined => Class::Quarantined,
            Self::Corridor(rejection) => Class::Corridor(
                rejection.corridor.clone(),
                rejection.phase,
                rejection.cause.clone(),
            ),
            Self::Nodes(rejection) => {
                Class::Nodes(rejection.reasons.keys().map(ToString::to_string).collect())
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    Pod(String),
    Quarantined,
    Corridor(ObjectKey, Option<CorridorPhase>, CorridorCause),
    Nodes(Vec<String>),
}

/// What each Node said. A Node may give several reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesRejection {
    pub reasons: BTreeMap<NodeReason, ReasonCount>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasonCount {
    pub nodes: usize,
    /// A few of the Nodes, to look at.
    pub examples: Vec<NodeName>,
}

/// Enough to start looking, few enough to read.
const EXAMPLES_MAX: usize = 3;

impl NodesRejection {
    pub(crate) fn count(&mut self, reason: &NodeReason, node: &NodeName) {
        if !self.reasons.contains_key(reason) {
            self.reasons.insert(reason.clone(), ReasonCount::default());
        }
        if let Some(count) = self.reasons.get_mut(reason) {
            count.nodes += 1;
            if count.examples.len() < EXAMPLES_MAX {
                count.examples.push(node.clone());
            }
        }
    }
}

impl fmt::Display for NodesRejection {
    /// Sorted as texts, counts included, as kube-scheduler does it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, count)| format!("{} {reason}", count.nodes))
            .collect();
        texts.sort();
        f.write_str(&texts.join(", "))
    }
}

/// What a Corridor could not give, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorridorRejection {
    pub corridor: ObjectKey,
    pub policy: FailurePolicy,
    pub cause: CorridorCause,
    /// `None` when there is no such Corridor.
    pub phase: Option<CorridorPhase>,
    /// `None`: the Pod reserves nothing, it only needs the floor met.
    pub needed: Option<Gbps>,
    pub free: Gbps,
    pub floor: Gbps,
    pub achievable: Gbps,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorridorCause {
    NotInstalled,
    OtherNamespace,
    NotFound,
    Releasing,
    NotReady,
    /// corrd has not been heard of for too long.
    Stale,
    BelowFloor,
    MoreThanFloor,
    Short,
    KeptForHead {
        head: ObjectKey,
        times_passed: u32,
    },
}

impl CorridorRejection {
    pub fn deficit(&self) -> Gbps {
        self.needed.unwrap_or_default().saturating_sub(self.free)
    }

    fn wake_on(&self) -> WakeOn {
        let corridor = self.corridor.clone();
        match (&self.cause, self.policy) {
            (CorridorCause::OtherNamespace, _) => WakeOn::PodChange,
            (_, FailurePolicy::FailFast) => WakeOn::CorridorSpecChangeOrReady { corridor },
            (CorridorCause::MoreThanFloor, _) => WakeOn::CorridorSpecChange { corridor },
            _ => WakeOn::CorridorFree { corridor, at_least: self.needed.unwrap_or_default() },
        }
    }

    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { free, floor, .. } = self;
        match self.needed {
            None => write!(f, "needs the floor of {floor} Gbps met"),
            Some(needed) => write!(f, "needs {needed} Gbps, {free} of {floor} Gbps free"),
        }?;
        let deficit = self.deficit();
        if deficit.is_zero() { Ok(()) } else { write!(f, ", short by {deficit} Gbps") }
    }
}

impl fmt::Display for CorridorRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "corridor {}", self.corridor)?;
        if let Some(phase) = self.phase {
            write!(f, " ({phase})")?;
        }
        match &self.cause {
            CorridorCause::NotInstalled => {
                return f.write_str(": the CRD corridors.corridoros.io is not installed");
            }
            CorridorCause::NotFound => return f.write_str(" not found"),
            CorridorCause::OtherNamespace => {
                return f.write_str(" belongs to another namespace, which does not share it");
            }
            CorridorCause::Releasing => return f.write_str(": is being released"),
            CorridorCause::MoreThanFloor => {
                let asked = self.needed.unwrap_or_default();
                return write!(f, ": asks {asked} Gbps, the floor is {}", self.floor);
            }
            _ => f.write_str(": ")?,
        }
        self.write_figures(f)?;
        match &self.cause {
            CorridorCause::Stale => f.write_str(", corrd has not reported for 15 s"),
            CorridorCause::BelowFloor => {
                write!(f, ", achievable {} Gbps is below the floor", self.achievable)
            }
            CorridorCause::KeptForHead { head, times_passed } => {
                write!(f, ", kept for {head}, which was passed {times_passed} times")
            }
            _ => Ok(()),
        }
    }
}
