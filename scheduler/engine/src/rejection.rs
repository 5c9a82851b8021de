//! Why a Pod cannot be placed now. A rejection carries its own wake-up, so that holding a
//! Pod and releasing it cannot drift apart.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{Amount, FailurePolicy, Hold, NodeName, NotReady, ObjectKey, ObjectRef, Phase};
use rules::{Plugin, Reason};

pub use crate::nodes_rejection::{NodesRejection, ReasonCount};

use crate::decision::ConditionReason;
use crate::wakes_on::WakeOn;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejection {
    /// Something in the Pod itself.
    Pod(Hold),
    Object(Box<ObjectRejection>),
    Nodes(NodesRejection),
    /// The Pod's rules cannot be applied.
    Failed(FailedAttempt),
    /// A Node was found, but the API server did not bind the Pod to it.
    Binding(BindingRejection),
    /// The scheduler itself failed on this Pod; the others go on without it.
    Quarantined,
}

/// An attempt that ended with an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    pub why: String,
    /// The error may be of something else than the Pod: it is tried again by itself.
    pub is_retried: bool,
}

/// A binding cycle that failed, with the words of the API server, or of the plugin whose PreBind failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRejection {
    /// `None`: the Binding itself was refused.
    #[serde(default)]
    pub plugin: Option<Plugin>,
    pub node: NodeName,
    pub message: Arc<str>,
}

impl fmt::Display for BindingRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, node, message } = self;
        match plugin {
            Some(plugin) => write!(f, "running PreBind plugin \"{plugin}\": {message}"),
            None => write!(
                f,
                "binding rejected: the API server did not bind the Pod to node {node}: {message}"
            ),
        }
    }
}

impl Rejection {
    pub fn wake_on(&self) -> WakeOn {
        match self {
            Self::Failed(failed) if failed.is_retried => WakeOn::BackoffEnds,
            Self::Pod(_) | Self::Failed(_) | Self::Quarantined => WakeOn::PodChange,
            Self::Object(rejection) => rejection.wake_on(),
            Self::Nodes(_) => WakeOn::NodeFits,
            Self::Binding(_) => WakeOn::BackoffEnds,
        }
    }

    /// The reason of the Pod's condition, as kube-scheduler has it: an error is nothing that more Nodes would mend.
    pub fn condition_reason(&self) -> ConditionReason {
        match self {
            Self::Binding(_) => ConditionReason::SchedulerError,
            Self::Failed(failed) if failed.is_retried => ConditionReason::SchedulerError,
            Self::Pod(_)
            | Self::Object(_)
            | Self::Nodes(_)
            | Self::Failed(_)
            | Self::Quarantined => ConditionReason::Unschedulable,
        }
    }

    /// The message of the Pod's condition, in the form that users of kube-scheduler know.
    pub fn message(&self, nodes_total: usize) -> String {
        match self {
            Self::Pod(hold) => hold.to_string(),
            Self::Failed(failed) => failed.why.clone(),
            Self::Binding(rejection) => rejection.to_string(),
            Self::Quarantined => "the scheduler failed on this Pod and has set it aside; \
                                  change or re-create the Pod to have it tried again"
                .to_owned(),
            Self::Object(rejection) => {
                let prefix = match rejection.policy {
                    FailurePolicy::Queue => "",
                    FailurePolicy::FailFast => "FailFast: ",
                };
                format!("{prefix}0/{nodes_total} nodes are available: {rejection}.")
            }
            Self::Nodes(_) if nodes_total == 0 => "no nodes available to schedule pods".to_owned(),
            Self::Nodes(rejection) => {
                let unsupported = rejection.unsupported.as_ref();
                let unsupported = unsupported.map(|it| format!("UnsupportedFeature: {it}; "));
                let unsupported = unsupported.unwrap_or_default();
                format!("{unsupported}0/{nodes_total} nodes are available: {rejection}")
            }
        }
    }

    /// The same, with a note on excluded Nodes, which to the rules are full, and with what is known of its claims.
    pub(crate) fn message_with(&self, nodes_total: usize, excluded: Option<&str>) -> String {
        let mut message = self.message(nodes_total);
        let Self::Nodes(nodes) = self else { return message };
        let is_full = |count: &ReasonCount| count.reason == Reason::TOO_MANY_PODS;
        let excluded = excluded.filter(|_| nodes.reasons.values().any(is_full));
        let volumes = nodes.volumes.as_ref().and_then(|it| it.message());
        for more in excluded.into_iter().chain(volumes.as_deref()) {
            message.push(' ');
            message.push_str(more);
        }
        message
    }

    /// Equal for two rejections that differ only in live figures: a condition is
    /// rewritten when this changes, not with every Amount.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Pod(hold) => Fingerprint::Pod(hold.to_string()),
            Self::Failed(failed) => Fingerprint::Pod(failed.why.clone()),
            Self::Binding(rejection) => Fingerprint::Binding(rejection.message.clone()),
            Self::Quarantined => Fingerprint::Quarantined,
            Self::Object(rejection) => {
                let all = std::iter::once(&**rejection).chain(&rejection.others);
                Fingerprint::Objects(all.map(ObjectRejection::substance).collect())
            }
            Self::Nodes(rejection) => {
                let NodesRejection { reasons, unsupported, volumes, .. } = rejection;
                let unsupported = unsupported.iter().map(ToString::to_string);
                let volumes = volumes.iter().flat_map(|it| it.substance());
                let all = unsupported.chain(reasons.keys().cloned()).chain(volumes);
                Fingerprint::Nodes(all.collect())
            }
        }
    }
}

/// What a report says, without its figures: a Pod is reported again when this changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fingerprint {
    Pod(String),
    Binding(Arc<str>),
    Quarantined,
    /// Each with why.
    Objects(Vec<(ObjectRef, Option<Phase>, Arc<str>)>),
    Nodes(Vec<String>),
}

/// The reason of a condition `Ready` when less is measured than the floor.
const BELOW_FLOOR: &str = "BelowFloor";
/// Its reason when no daemon is configured: then none is silent.
const BACKEND_NOT_CONFIGURED: &str = "BackendNotConfigured";

/// Whether what an object says of itself is why it promises nothing.
pub(crate) fn explains(not_ready: &NotReady, cause: &Cause) -> bool {
    match cause {
        Cause::NotReady | Cause::BelowFloor => true,
        Cause::Stale => &*not_ready.reason == BACKEND_NOT_CONFIGURED,
        _ => false,
    }
}

/// What an object could not give, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRejection {
    pub object: ObjectRef,
    pub policy: FailurePolicy,
    pub cause: Cause,
    /// `None` when there is no such object, or none that the Pod may know of.
    pub phase: Option<Phase>,
    /// `None`: the Pod reserves nothing, it only needs the floor met.
    pub needed: Option<Amount>,
    pub free: Amount,
    pub floor: Amount,
    pub measured: Amount,
    /// Why it is not Ready, in its own words, if that is why.
    #[serde(default)]
    pub not_ready: Option<NotReady>,
    /// Further objects that the Pod refers to and that do not let it pass either.
    #[serde(default)]
    pub others: Vec<Self>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    NotInstalled,
    OtherNamespace,
    OtherSecurityDomain {
        domain: Arc<str>,
    },
    NotFound,
    Releasing,
    NotReady,
    /// Its daemon has not been heard of for too long.
    Stale,
    BelowFloor,
    MoreThanFloor,
    Short,
    /// It is not shareable, and in use.
    InUse {
        by: ObjectKey,
    },
    KeptForHead {
        head: ObjectKey,
        times_passed: u32,
    },
    /// There would be enough, were it not reserved for a nominated Pod whose victims are terminating.
    HeldForNominated {
        pod: ObjectKey,
    },
}

impl Cause {
    /// Every label.
    pub const LABELS: [&'static str; 13] = [
        "NotInstalled",
        "OtherNamespace",
        "OtherSecurityDomain",
        "NotFound",
        "Releasing",
        "NotReady",
        "Stale",
        "BelowFloor",
        "MoreThanFloor",
        "Short",
        "InUse",
        "KeptForHead",
        "HeldForNominated",
    ];

    /// The cause without its live figures.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotInstalled => "NotInstalled",
            Self::OtherNamespace => "OtherNamespace",
            Self::OtherSecurityDomain { .. } => "OtherSecurityDomain",
            Self::NotFound => "NotFound",
            Self::Releasing => "Releasing",
            Self::NotReady => "NotReady",
            Self::Stale => "Stale",
            Self::BelowFloor => "BelowFloor",
            Self::MoreThanFloor => "MoreThanFloor",
            Self::Short => "Short",
            Self::InUse { .. } => "InUse",
            Self::KeptForHead { .. } => "KeptForHead",
            Self::HeldForNominated { .. } => "HeldForNominated",
        }
    }
}

impl ObjectRejection {
    pub(crate) fn because(self, cause: Cause) -> Box<Self> {
        Box::new(Self { cause, ..self })
    }

    pub fn deficit(&self) -> Amount {
        self.needed.unwrap_or_default().saturating_sub(self.free)
    }

    pub(crate) fn wake_on(&self) -> WakeOn {
        let object = self.object.clone();
        match (&self.cause, self.policy) {
            (Cause::OtherNamespace, _) => WakeOn::PolicyChange { object },
            (Cause::OtherSecurityDomain { .. }, _) => WakeOn::DomainChange { object },
            (_, FailurePolicy::FailFast) => WakeOn::ObjectSpecChangeOrReady { object },
            (Cause::MoreThanFloor, _) => WakeOn::ObjectSpecChange { object },
            _ => WakeOn::ObjectFree { object, at_least: self.needed.unwrap_or_default() },
        }
    }

    /// The cause in substance: of an object that is not Ready, whether its reading is at the floor for the moment is a
    /// figure, which alternates with each sample near the floor.
    fn substance(&self) -> (ObjectRef, Option<Phase>, Arc<str>) {
        let why = match (&self.cause, self.phase, &self.not_ready) {
            (_, _, Some(not_ready)) => not_ready.reason.clone(),
            (Cause::BelowFloor, Some(phase), None) if phase != Phase::Ready => {
                Cause::NotReady.label().into()
            }
            (cause, ..) => cause.label().into(),
        };
        (self.object.clone(), self.phase, why)
    }

    /// Why the object is not Ready, unless it is that less is measured than its floor: then the figures say more.
    fn reported_by_object(&self) -> Option<&NotReady> {
        let is_below = self.cause == Cause::BelowFloor;
        let not_ready = self.not_ready.as_ref()?;
        (!is_below || &*not_ready.reason != BELOW_FLOOR).then_some(not_ready)
    }

    fn write_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.others.iter().try_for_each(|other| write!(f, ", {other}"))
    }

    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { free, floor, .. } = self;
        let unit = self.object.kind.unit();
        match self.needed {
            None => write!(f, "needs the floor of {floor} {unit} met"),
            Some(needed) => write!(f, "needs {needed} {unit}, {free} of {floor} {unit} free"),
        }?;
        let deficit = self.deficit();
        if deficit.is_zero() { Ok(()) } else { write!(f, ", short by {deficit} {unit}") }
    }
}

impl fmt::Display for ObjectRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_own(f)?;
        self.write_others(f)
    }
}

impl ObjectRejection {
    fn write_own(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.object.kind;
        write!(f, "{}", self.object)?;
        if let Some(phase) = self.phase {
            write!(f, " ({phase})")?;
        }
        match &self.cause {
            Cause::NotInstalled => return write!(f, ": the CRD {} is not installed", kind.crd()),
            Cause::NotFound => return f.write_str(" not found"),
            Cause::OtherNamespace => {
                return f.write_str(" belongs to another namespace, which does not share it");
            }
            Cause::OtherSecurityDomain { domain } => {
                return write!(f, ": only namespaces of security domain {domain:?} may share it");
            }
            Cause::Releasing => return f.write_str(": is being released"),
            Cause::InUse { by } => return write!(f, ": is not shareable and in use by {by}"),
            Cause::MoreThanFloor => {
                let asked = self.needed.unwrap_or_default();
                return write!(f, ": asks {asked} {}, the floor is {}", kind.unit(), self.floor);
            }
            _ => f.write_str(": ")?,
        }
        self.write_figures(f)?;
        if let Some(NotReady { reason, message }) = self.reported_by_object() {
            return match &**message {
                "" => write!(f, ", {reason}"),
                message => write!(f, ", {reason}: {}", message.trim_end_matches('.')),
            };
        }
        match &self.cause {
            Cause::Stale => write!(f, ", {} has not reported for 15 s", kind.backend()),
            Cause::BelowFloor => {
                let measured = self.measured;
                write!(f, ", achievable {measured} {} is below the floor", kind.unit())
            }
            Cause::NotReady => f.write_str(", it is not Ready yet"),
            Cause::KeptForHead { head, times_passed } => {
                write!(f, ", kept for {head}, which was passed {times_passed} times")
            }
            Cause::HeldForNominated { pod } => write!(f, ", held for {pod}, whose victims leave"),
            _ => Ok(()),
        }
    }
}
