//! What would let a rejected Pod be tried again, and the words for it.

use std::fmt;

use model::{Amount, ObjectRef, SchedulingSpec};
use rules::{Plugin, Reason};

use crate::rejection::{Cause, NodesRejection, ObjectRejection, Rejection};
use crate::resource_units::Unit;

/// What may let a rejected Pod pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeOn {
    /// The Pod itself changes.
    PodChange,
    /// At least this much of the object is free.
    ObjectFree {
        object: ObjectRef,
        at_least: Amount,
    },
    ObjectSpecChange {
        object: ObjectRef,
    },
    ObjectSpecChangeOrReady {
        object: ObjectRef,
    },
    /// The owner of the object lets the Pod's namespace in.
    PolicyChange {
        object: ObjectRef,
    },
    /// The object or the Pod's namespace comes into another security domain.
    DomainChange {
        object: ObjectRef,
    },
    /// A Node comes or changes so that the Pod fits.
    NodeFits,
    /// Time passes.
    BackoffEnds,
}

impl fmt::Display for WakeOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PodChange => f.write_str("a change of the Pod"),
            Self::ObjectFree { object, at_least } if at_least.is_zero() => {
                write!(f, "{object} meets its floor")
            }
            Self::ObjectFree { object, at_least } => {
                write!(f, "{at_least} {} free on {object}", object.kind.unit())
            }
            Self::ObjectSpecChange { object } => write!(f, "a spec change of {object}"),
            Self::ObjectSpecChangeOrReady { object } => {
                write!(f, "a spec change of {object}, or it enters Ready")
            }
            Self::PolicyChange { object } => {
                write!(
                    f,
                    "an AttestationPolicy in namespace {} that lets the Pod's namespace in",
                    object.key.namespace
                )
            }
            Self::DomainChange { object } => {
                write!(f, "another security domain of the Pod's namespace or of {object}")
            }
            Self::NodeFits => f.write_str("a node on which the Pod fits"),
            Self::BackoffEnds => f.write_str("its back-off ends, within 10 s"),
        }
    }
}

pub(crate) fn wakes_on(scheduling: &SchedulingSpec, rejection: &Rejection) -> Vec<String> {
    match rejection {
        Rejection::Nodes(rejected) if !rejected.reasons.is_empty() => {
            of_nodes(scheduling, rejected)
        }
        Rejection::Object(rejection) => vec![of_object(rejection)],
        other => vec![other.wake_on().to_string()],
    }
}

/// What would have to change first, where that is more telling than what the Pod waits for.
fn of_object(rejection: &ObjectRejection) -> String {
    let wake_on = rejection.wake_on();
    let object = &rejection.object;
    match (&rejection.cause, &wake_on) {
        (Cause::InUse { by }, WakeOn::ObjectFree { .. }) => format!("Pod {by} ends"),
        (Cause::NotFound, WakeOn::ObjectFree { .. }) => format!("{object} is created"),
        (Cause::Stale, WakeOn::ObjectFree { .. }) => {
            format!("{} reports again", object.kind.backend())
        }
        (Cause::BelowFloor | Cause::NotReady, WakeOn::ObjectFree { .. }) => {
            format!("{object} is Ready and meets its floor again")
        }
        _ => wake_on.to_string(),
    }
}

/// The reason of most Nodes first.
fn of_nodes(scheduling: &SchedulingSpec, rejected: &NodesRejection) -> Vec<String> {
    let mut counts: Vec<_> = rejected.reasons.values().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.nodes));
    let mut words = Vec::new();
    for count in counts {
        let word = word(scheduling, &count.reason);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn word(scheduling: &SchedulingSpec, reason: &Reason) -> String {
    match reason {
        Reason::Fixed(plugin, index) => rules::fixed_reason(*plugin, *index).wakes_on.to_owned(),
        Reason::NotNamed { .. } => {
            "a node that the Pod's node selector and affinity match".to_owned()
        }
        Reason::OutOfReach { object } => {
            format!("a node that the node selector of {object} matches")
        }
        Reason::Insufficient { resource, .. } => {
            let asked = Unit::of(resource).tell(scheduling.requests.asked.amount(resource));
            match &**resource {
                "cpu" => format!("{asked} free on one node"),
                name => format!("{asked} of {name} free on one node"),
            }
        }
        Reason::Volume { problem, .. } => problem.wakes_on(),
        Reason::Devices(problem) => problem.wakes_on(),
        Reason::Failed { plugin: Plugin::DynamicResources, .. } => {
            "a change of its claims, their classes or devices".to_owned()
        }
        Reason::Failed { .. } => "a change of its volumes".to_owned(),
        Reason::Unparsable { .. } => "a change of the Pod".to_owned(),
    }
}
