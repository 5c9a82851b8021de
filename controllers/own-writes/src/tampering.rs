//! Writes by other accounts to what only the scheduler may write: the label of `corridor_tampering_total`.

use std::fmt;

/// One kind of tampering. The list is closed, so no tenant's text becomes a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tampering {
    /// Result annotations of a Pod were set, changed or removed.
    Grant,
    /// A Pod that needs a grant was bound by another account.
    Placement,
    /// `corridoros.io/leader` was changed, or a Pod was bound by a replica that does not lead.
    Leader,
    /// The status of a custom resource was written.
    Status,
    /// A finalizer was removed while something was allocated.
    Finalizer,
    /// `corridoros.io/allocationIntent` was set, changed or removed.
    Intent,
    /// `corridoros.io/attestationTicket` was set, changed or removed.
    Ticket,
}

/// The reason of the Warning Event on what was tampered with.
pub const TAMPERING_REASON: &str = "TamperingDetected";

/// Events and log lines about one object. Further tampering is only counted, so that it cannot fill the log.
pub const TAMPERING_REPORTS_MAX: u8 = 8;

impl Tampering {
    pub const ALL: [Self; 7] = [
        Self::Grant,
        Self::Placement,
        Self::Leader,
        Self::Status,
        Self::Finalizer,
        Self::Intent,
        Self::Ticket,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Placement => "placement",
            Self::Leader => "leader",
            Self::Status => "status",
            Self::Finalizer => "finalizer",
            Self::Intent => "intent",
            Self::Ticket => "ticket",
        }
    }
}

impl fmt::Display for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
