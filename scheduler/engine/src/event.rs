//! Every input of the engine.

use std::time::Duration;

use model::{Corridor, Node, NodeName, ObjectKey, Pod, PodUid};

#[derive(Clone, Debug)]
pub enum Event {
    NodeSeen(Node),
    NodeGone(NodeName),
    PodSeen(Pod),
    PodGone(PodUid),
    CorridorSeen(Corridor),
    CorridorGone(ObjectKey),
    /// corrd's Lease was renewed `age` ago, as of this event.
    BackendSeen {
        age: Duration,
    },
    BackendGone,
    /// The first complete list of this kind has been handed over.
    Synced(Kind),
    /// The kind is not installed in this cluster. Only Pods that refer to it wait for it.
    Absent(Kind),
    /// The API server bound the Pod as decided.
    BindDone(PodUid),
    /// It is certain that the Pod was not bound by us.
    BindRefused {
        pod: PodUid,
        refusal: Refusal,
    },
    /// No clear answer yet. The reservation stays; the driver goes on asking.
    BindUnknown(PodUid),
    /// A report on a held Pod could not be written: it is told again when its turn comes.
    ReportLost(PodUid),
}

/// What must have been listed once before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Nodes,
    Pods,
    Corridors,
    Backends,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Nodes, Self::Pods, Self::Corridors, Self::Backends];
}

/// Why a Binding did not happen. What has become of the Pod arrives as an event of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
}
