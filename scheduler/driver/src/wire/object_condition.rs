use jiff::Timestamp;
use serde::Deserialize;

/// A condition of a Corridor or MemoryBundle.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireObjectCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
    #[serde(default)]
    pub last_transition_time: Option<Timestamp>,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
}
