//! What shadow mode has compared.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `shadow`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// The scheduler whose decisions are compared.
    pub scheduler_name: String,
    /// RFC 3339.
    pub since: String,
    pub compared: u64,
    /// The share of compared decisions that agree, 0 to 1. Null: none was compared.
    pub agreement: Option<f64>,
    pub by_reason: BTreeMap<String, u64>,
    /// The last of them, with both sides.
    pub disagreements: Vec<Disagreement>,
    /// Those that are no longer kept.
    pub disagreements_dropped: u64,
}

/// One Pod that both schedulers decided differently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disagreement {
    /// `namespace/name`.
    pub pod: String,
    /// RFC 3339.
    pub at: String,
    pub reason: String,
    pub ours: OurDecision,
    pub theirs: TheirDecision,
}

/// What this scheduler would have done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OurDecision {
    #[serde(rename_all = "camelCase")]
    Place {
        /// Some of the nodes with the highest score.
        nodes: Vec<String>,
        equally_good: usize,
        /// Null: there was no choice, so that nothing was scored.
        score: Option<i64>,
        feasible: usize,
    },
    Hold {
        message: String,
    },
}

/// What the other scheduler did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TheirDecision {
    #[serde(rename_all = "camelCase")]
    Placed {
        node: String,
        /// The score of that node by the rules of this scheduler.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        score_here: Option<i64>,
        /// Why this scheduler would have rejected that node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejected_here: Option<Vec<String>>,
    },
    Held {
        message: String,
    },
}
