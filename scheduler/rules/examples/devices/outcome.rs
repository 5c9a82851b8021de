//! What the claims get on a Node, in words that can be compared.

use std::collections::BTreeSet;
use std::fmt;

use model::Allocation;
use random_clusters::devices::milli;
use rules::AllocationFailure;
use serde_json::{Value, json};

use crate::oracle::Told;
use crate::translate::items;
use crate::written::written;

#[derive(Debug)]
pub enum Outcome {
    /// `status.allocation` of each claim.
    Fits(Vec<Value>),
    DoesNotFit,
    /// It does not fit, and pools contradict themselves.
    InvalidPools,
    /// What ends the whole attempt.
    Fatal(String),
    /// The search was stopped.
    GaveUp,
}

impl Outcome {
    pub fn ours(result: &Result<Vec<Allocation>, AllocationFailure>) -> Self {
        match result {
            Ok(allocations) => Self::Fits(allocations.iter().map(written).collect()),
            Err(AllocationFailure::DoesNotFit { has_invalid_pools: false }) => Self::DoesNotFit,
            Err(AllocationFailure::DoesNotFit { has_invalid_pools: true }) => Self::InvalidPools,
            Err(AllocationFailure::Fatal(error)) => Self::Fatal(class(&error.to_string())),
            Err(AllocationFailure::StepLimit { .. }) => Self::GaveUp,
        }
    }

    pub fn real(told: &Told) -> Self {
        match (&told.allocations, told.error.as_str()) {
            (Some(allocations), "") if !allocations.is_empty() => Self::Fits(allocations.clone()),
            (_, "") => Self::DoesNotFit,
            (_, "invalid resource pools were encountered") if told.only_here => Self::InvalidPools,
            _ if told.timed_out => Self::GaveUp,
            (_, error) => Self::Fatal(class(error)),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fits(_) => "fits",
            Self::DoesNotFit => "does not fit",
            Self::InvalidPools => "does not fit, and a pool is invalid",
            Self::Fatal(_) => "ends the attempt",
            Self::GaveUp => "search given up",
        }
    }

    pub fn allocations(&self) -> &[Value] {
        if let Self::Fits(allocations) = self { allocations } else { &[] }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits(allocations) => {
                for allocation in allocations {
                    write!(f, "[")?;
                    for result in items(&allocation["devices"]["results"]) {
                        let text =
                            |field: &str| result[field].as_str().unwrap_or_default().to_owned();
                        let of = ["request", "driver", "pool", "device"].map(text);
                        write!(f, " {}={}/{}/{}", of[0], of[1], of[2], of[3])?;
                    }
                    write!(f, " ]")?;
                }
                Ok(())
            }
            Self::Fatal(why) => write!(f, "{}: {why}", self.kind()),
            _ => f.write_str(self.kind()),
        }
    }
}

pub const NODE_SELECTOR: &str = "failed to parse node selector";

/// The text of an error without the words of libraries: Go says where in an expression it failed.
fn class(error: &str) -> String {
    let until = |text: &str| error.find(text).map(|at| error[..at + text.len()].to_owned());
    until("CEL runtime error: ")
        .or_else(|| until("CEL compile error: "))
        .or_else(|| error.contains("failed to parse node selector").then(|| NODE_SELECTOR.into()))
        .unwrap_or_else(|| error.to_owned())
}

/// What an allocation is, by what can differ.
pub fn parts(allocation: &Value) -> Vec<(&'static str, String)> {
    let results = items(&allocation["devices"]["results"]);
    let each = |fields: &[&str]| {
        let of = |result: &Value| fields.iter().map(|it| result[*it].clone()).collect::<Value>();
        results.iter().map(of).collect::<Value>().to_string()
    };
    let configs: BTreeSet<String> =
        items(&allocation["devices"]["config"]).iter().map(Value::to_string).collect();
    vec![
        ("devices", each(&["request", "driver", "pool", "device", "adminAccess", "shareID"])),
        ("consumed capacity", results.iter().map(consumed).collect::<Value>().to_string()),
        ("tolerations", each(&["tolerations"])),
        ("conditions", each(&["bindingConditions", "bindingFailureConditions"])),
        ("configs", format!("{configs:?}")),
        ("node selector", allocation["nodeSelector"].to_string()),
    ]
}

/// In thousandths: the same amount is written in several ways.
fn consumed(result: &Value) -> Value {
    let consumed = result["consumedCapacity"].as_object().into_iter().flatten();
    let amount = |it: &Value| milli(it.as_str().unwrap_or_default()).map(|it| it.to_string());
    consumed.map(|(name, it)| json!([name, amount(it)])).collect()
}

/// Whether a configuration is there more than once.
pub fn repeats_configs(allocation: &Value) -> bool {
    let configs = items(&allocation["devices"]["config"]);
    let different: BTreeSet<String> = configs.iter().map(Value::to_string).collect();
    different.len() < configs.len()
}
