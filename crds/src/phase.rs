//! The life of an allocated object, shared by Corridor and MemoryBundle.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// No doc comment on the type: in an optional field it would replace the
// description of that field in the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Seen, nothing asked of a daemon yet.
    #[default]
    Pending,
    /// A daemon has been asked.
    Allocating,
    /// Can serve Pods.
    Ready,
    /// Allocated, but below a floor or a target.
    Degraded,
    /// Refused, or lost.
    Failed,
    /// Being given back; takes no new Pods.
    Releasing,
    /// Written by a newer version. Never `Ready`, so nothing is placed on it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl Phase {
    /// In the order of an object's life.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Allocating,
        Self::Ready,
        Self::Degraded,
        Self::Failed,
        Self::Releasing,
        Self::Unknown,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Allocating => "Allocating",
            Self::Ready => "Ready",
            Self::Degraded => "Degraded",
            Self::Failed => "Failed",
            Self::Releasing => "Releasing",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_the_wire_form() {
        use Phase::{Allocating, Degraded, Failed, Pending, Ready, Releasing};
        for phase in [Pending, Allocating, Ready, Degraded, Failed, Releasing] {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.to_string());
        }
    }

    #[test]
    fn a_phase_of_the_future_is_unknown_not_an_error() {
        assert_eq!(serde_json::from_str::<Phase>("\"Hibernating\"").unwrap(), Phase::Unknown);
    }
}
