//! When a Pod could start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `when`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// Not before this time, RFC 3339. Null: nothing that is known leads there.
    pub earliest: Option<String>,
    /// What the estimate rests on.
    pub basis: Vec<String>,
    pub confidence: Confidence,
}

/// How much of an estimate is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Declared ends alone lead there.
    Declared,
    /// Other Pods come first, and their ends are not declared.
    Partial,
    Unknown,
}
