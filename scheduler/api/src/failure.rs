//! Every answer that is not a success.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What was wrong, and what to do.
    pub error: String,
    /// Of a replica that follows: the identity of the leader, if one is known.
    #[serde(default)]
    pub leader: Option<String>,
}
