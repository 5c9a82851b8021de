//! The Pods that hold a grant on an object.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `status.inUseBy` names at most this many Pods; `status.inUse` counts all.
pub const IN_USE_BY_MAX: usize = 32;

/// A bound Pod that holds a grant on this object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodUse {
    /// Namespace of the Pod.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name of the Pod.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID of the Pod: a new Pod of the same name is another user.
    #[schemars(length(max = 63))]
    pub uid: String,
}
