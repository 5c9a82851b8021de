//! The objects that Pods reserve bandwidth of.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Amount, Instant, Labels, ObjectKey, ObjectUid};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    Corridor,
    MemoryBundle,
}

impl ObjectKind {
    pub const ALL: [Self; 2] = [Self::Corridor, Self::MemoryBundle];

    /// What its bandwidth is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Corridor => "Gbps",
            Self::MemoryBundle => "GB/s",
        }
    }

    /// The daemon that measures it.
    pub fn backend(self) -> &'static str {
        match self {
            Self::Corridor => "corrd",
            Self::MemoryBundle => "memqosd",
        }
    }

    pub fn crd(self) -> &'static str {
        match self {
            Self::Corridor => "corridors.corridoros.io",
            Self::MemoryBundle => "memorybundles.corridoros.io",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Corridor => "corridor",
            Self::MemoryBundle => "memory bundle",
        })
    }
}

/// The label of a Namespace that says which security domain it belongs to. Tenants cannot set it:
/// Namespaces belong to administrators.
pub const SECURITY_DOMAIN_LABEL: &str = "corridoros.io/securityDomain";

/// Which object, by name. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    pub kind: ObjectKind,
    pub key: ObjectKey,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// `status.phase`; one that we do not know is never usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    #[default]
    Pending,
    Allocating,
    Ready,
    Degraded,
    Failed,
    Releasing,
    Unknown,
}

impl fmt::Display for Phase {
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

/// Why an object is not Ready, in its controller's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotReady {
    pub reason: Arc<str>,
    pub message: Arc<str>,
}

/// What scheduling needs to know of a Corridor or a MemoryBundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservable {
    pub object: ObjectRef,
    pub uid: ObjectUid,
    /// Moves only when the spec changes.
    pub generation: i64,
    pub deleting: bool,
    /// `spec.minGbps`, `spec.bandwidthFloorGBs`, or that of the window that is open: what the owner asks for now.
    pub floor_asked: Amount,
    /// The most that the owner ever asks for: that of a window, if it is more.
    pub floor_asked_max: Amount,
    /// When the next window opens or closes, and what is asked for from then on.
    pub floor_asked_next: Option<(Instant, Amount)>,
    /// `status.floorGbps`, `status.floorGBs`: what the daemon confirmed. Absent: what was asked.
    pub floor_confirmed: Option<Amount>,
    /// `status.achievableGbps`, `status.achievedGBs`: what the daemon measures now.
    pub measured: Amount,
    pub phase: Phase,
    /// What its condition `Ready` says while it is false.
    pub not_ready: Option<NotReady>,
    /// `status.corridorId`, `status.ffmHandle`: the daemon's handle, written on every Pod that is
    /// bound with it.
    pub handle: Option<Arc<str>>,
    /// Limits the Nodes that its Pods may use. Empty: all.
    pub node_selector: Labels,
    /// Only one Pod may use it: a bundle that is not shareable.
    pub exclusive: bool,
    /// Only namespaces of this security domain may share it. Empty: every one that may use it.
    pub security_domain: Arc<str>,
    /// Hex SHA-256 of its attestation ticket, written on every Pod that is bound with it.
    pub ticket_hash: Option<Arc<str>>,
    /// Its status names users, correct or outdated.
    pub use_told: bool,
}

impl Reservable {
    /// The bandwidth that may be promised: never more than the daemon agreed to, so raising the
    /// floor promises nothing until it answers.
    pub fn floor(&self) -> Amount {
        self.floor_confirmed.map_or(self.floor_asked, |confirmed| confirmed.min(self.floor_asked))
    }
}
