//! The differences that we know of and keep. Everything else fails the comparison.

use super::compare::Difference;

/// A difference that is kept on purpose.
#[derive(Debug)]
pub struct Allowed {
    pub quirk: &'static str,
    /// Why ours does not follow.
    pub why: &'static str,
    /// In the tree of Kubernetes v1.36.4.
    pub source: &'static str,
    covers: fn(&Difference) -> bool,
}

pub const ALLOWED: [Allowed; 0] = [];

pub(super) fn allowed(difference: &Difference) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|entry| (entry.covers)(difference))
}
