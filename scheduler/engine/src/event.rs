//! Every input of the engine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{DeviceType, NodeName, ObjectRef, PodUid, SelectorVerdict};

use crate::decision::Report;
use crate::engine::EngineConfig;
use crate::observe::{Watched, WatchedId, WatchedKind};

/// An expression, evaluated for some types of devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectorEvaluation {
    pub expression: Arc<str>,
    pub verdicts: Vec<(Arc<DeviceType>, SelectorVerdict)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A watched object was added or modified.
    Seen(Watched),
    /// It is gone, or does not concern the engine any more.
    Gone(WatchedId),
    /// A Pod is on the Node, and its present version cannot be read.
    PodUnreadable { pod: PodUid, node: NodeName },
    /// The kubelet has rejected a Pod that was bound here, for a reason that is the Node's. Comes before the event that
    /// shows the Pod's end.
    KubeletRejected { pod: PodUid, why: Arc<str> },
    /// What expressions of selectors say of types of devices. Comes before the objects that need it.
    SelectorsEvaluated(Vec<SelectorEvaluation>),
    /// No object has this expression any more.
    SelectorGone(Arc<str>),
    /// No device is of this type any more.
    DeviceTypeGone(Arc<DeviceType>),
    /// The first complete list of this kind has been handed over.
    Synced(WatchedKind),
    /// The kind is not installed in this cluster. Only Pods that refer to it wait for it.
    Absent(WatchedKind),
    /// Other settings hold from now on. The seed stays.
    Reconfigured(Box<EngineConfig>),
    /// This replica leads from now on, and has seen everything that its predecessor did.
    TermBegan,
    /// The API server bound the Pod as decided.
    BindDone(PodUid),
    /// The Binding is given up: it did not take effect, or this replica's term ended and its successor finds out. What
    /// was reserved is free: after a term nothing is decided before a resync has shown every Binding.
    BindRefused { pod: PodUid, refusal: BindRefusal },
    /// Everything that had to be written before the Pod's Binding was written. The objects as the writes left them came
    /// before this.
    PrepareDone(PodUid),
    /// Some of it was not: the binding cycle is given up.
    PrepareRefused { pod: PodUid, refusal: BindRefusal },
    /// No clear outcome yet. The reservation stays; the driver keeps checking.
    BindUnclear(PodUid),
    /// The report on an unschedulable Pod was written. The Pod as the write left it came before this.
    ReportWritten(PodUid),
    /// It could not be written: it is reported again when its turn comes.
    ReportLost(PodUid),
    /// This report was not sent: what was sent to its namespace before has no answer yet.
    ReportPutOff(Box<Report>),
    /// The report on an object's use could not be written.
    UseLost(ObjectRef),
    /// This step of an eviction is done. The first is answered when the victim may go.
    EvictionStepDone { victim: PodUid, step: EvictionStep },
    /// This step was not begun: evictions in the victim's namespace before it have no answer yet.
    EvictionPutOff { victim: PodUid },
    /// The victim was not deleted this time; whether it is tried again is asked anew.
    EvictionDelayed { victim: PodUid },
    /// It failed, and the victim is still there: the eviction is given up, and the preemptor is tried again.
    EvictionFailed { victim: PodUid },
}

/// A victim is announced first, so that its state can be saved before it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EvictionStep {
    /// Condition `DisruptionTarget` with reason `PreemptionByScheduler`.
    Announce,
    /// Deletion, of this UID and no other.
    Delete,
    /// It may stay after all: the condition is withdrawn.
    Withdraw,
}

/// Why a Binding was given up. What has become of the Pod arrives as an event of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindRefusal {
    pub cause: BindRefusalCause,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindRefusalCause {
    /// The API server, or an admission policy or webhook that it asked, said no or failed.
    ApiServer,
    /// The Pod has changed since it was read: most often the next attempt succeeds.
    Conflict,
    /// Not reported to the Pod's owner: the Pod is gone, or another replica leads.
    Obsolete,
}
