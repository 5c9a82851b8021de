use std::fmt;
use std::sync::Arc;

use crate::{CorridorUid, Gbps, Labels, ObjectKey};

/// `status.phase`; one that we do not know is never usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CorridorPhase {
    #[default]
    Pending,
    Allocating,
    Ready,
    Degraded,
    Failed,
    Releasing,
    Unknown,
}

impl fmt::Display for CorridorPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "Pending",
            Self::Allocating => "Allocating",
            Self::Ready => "Ready",
            Self::Degraded => "Degraded",
            Self::Failed => "Failed",
            Self::Releasing => "Releasing",
            Self::Unknown => "Unknown",
        })
    }
}

/// What scheduling needs to know of a Corridor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corridor {
    pub key: ObjectKey,
    pub uid: CorridorUid,
    /// Moves only when the spec changes.
    pub generation: i64,
    pub deleting: bool,
    /// `spec.minGbps`: what the owner asked for.
    pub floor_asked: Gbps,
    /// `status.floorGbps`: what corrd confirmed. Absent: what was asked.
    pub floor_confirmed: Option<Gbps>,
    /// `status.achievableGbps`: what corrd measures now.
    pub achievable: Gbps,
    pub phase: CorridorPhase,
    /// `status.corridorId`: corrd's handle, written on every Pod that is bound with it.
    pub corridor_id: Option<Arc<str>>,
    /// Limits the Nodes that its Pods may use. Empty: all.
    pub node_selector: Labels,
}

impl Corridor {
    /// The bandwidth that may be promised: never more than corrd agreed to, so
    /// raising `minGbps` promises nothing until it answers.
    pub fn floor(&self) -> Gbps {
        self.floor_confirmed.map_or(self.floor_asked, |confirmed| confirmed.min(self.floor_asked))
    }
}
