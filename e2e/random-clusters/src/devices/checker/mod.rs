//! Whether an allocation may be: a second opinion, which searches for nothing and shares no code with an allocator. It
//! reads the objects as they are written.

mod amounts;
mod claims;
mod reach;
mod sums;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use reach::View;

/// What an allocation must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Each claim has one allocation, of at most 32 devices.
    Shape,
    /// Each request, or one alternative of it, has as many devices as it asks for.
    Count,
    /// `All` means all.
    All,
    /// Devices are published by pools that can be used, and reach the Node.
    Reach,
    Selectors,
    Taints,
    /// A device belongs to one claim, unless it can be shared.
    InUse,
    /// A request has a device once, and so has a claim what it does not share.
    Repeated,
    /// What is consumed is what was asked for, as the policy has it.
    Amounts,
    /// Shares together are not more than there is.
    Capacity,
    Counters,
    MatchAttribute,
    DistinctAttribute,
    /// The node selector is that of the devices and true of the Node.
    Nodes,
    /// Tolerations and conditions are those of the request and the device.
    Copied,
}

/// What is wrong with an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    pub rule: Rule,
    pub text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.text)
    }
}

/// Everything that is wrong with these `status.allocation`s of the claims of a case, in their order, on the Node.
pub fn complaints(case: &Value, node: &Value, allocations: &[Value]) -> Vec<Complaint> {
    let mut judge = Judge { case, node, view: View::of(case, node), complaints: vec![] };
    let claims = super::items(&case["claims"]);
    judge.require(claims.len() == allocations.len(), Rule::Shape, || "number of claims".to_owned());
    for (claim, allocation) in claims.iter().zip(allocations) {
        judge.claim(claim, allocation);
    }
    judge.sums(allocations);
    judge.complaints
}

struct Judge<'a> {
    case: &'a Value,
    node: &'a Value,
    view: View<'a>,
    complaints: Vec<Complaint>,
}

impl Judge<'_> {
    fn require(&mut self, holds: bool, rule: Rule, text: impl FnOnce() -> String) {
        if !holds {
            self.complaints.push(Complaint { rule, text: text() });
        }
    }
}

/// Driver, pool and name of a device.
type Id<'a> = [&'a str; 3];

fn id(result: &Value) -> Id<'_> {
    ["driver", "pool", "device"].map(|field| super::text(&result[field]))
}

fn is_shared(device: &Value) -> bool {
    device["allowMultipleAllocations"] == true
}

fn has_admin_access(result: &Value) -> bool {
    result["adminAccess"] == true
}
