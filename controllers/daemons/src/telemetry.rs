//! One long poll for all objects of a daemon.

use serde::{Deserialize, Serialize};

use crate::corrd::CorridorTelemetry;
use crate::memqosd::BundleTelemetry;

/// Where a reader stands in the feed: `<epoch>-<n>`. Hand it back as it came; only the daemon
/// looks inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub String);

/// What changed since a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TelemetryPage {
    /// To be sent as `since` with the next call.
    pub revision: Revision,
    /// Every object is here: what is not here does not exist. So after a start, after a restart of
    /// the daemon, and for a reader that fell too far behind.
    #[serde(default)]
    pub full: bool,
    #[serde(default)]
    pub corridors: Vec<CorridorTelemetry>,
    #[serde(default)]
    pub bundles: Vec<BundleTelemetry>,
    /// Ids and handles that were released, or lost because their lease ran out.
    #[serde(default)]
    pub gone: Vec<String>,
}

/// How a release ended. Both mean: nothing of ours is there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Released now or before.
    Gone,
    /// The id belongs to another owner now; it was left alone.
    NotOurs,
}
