//! The differences that we know of and keep. Everything else fails the comparison.

use super::compare::{About, Difference};

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

pub const ALLOWED: [Allowed; 1] = [Allowed {
    quirk: "the words of an error that ends the attempt",
    why: "They name an internal step and are those of Go's validation library. Ours names the plugin, \
          which must be the same, and what is wrong in its own words. So far only preferences for \
          Nodes get there: the API server accepts values in them that nobody can read.",
    source: "pkg/scheduler/framework/runtime/framework.go, RunPreScorePlugins; \
             pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, PreScore",
    covers: |difference| difference.about == About::ErrorText,
}];

pub(super) fn all_allowed(differences: &[Difference]) -> bool {
    differences.iter().all(|difference| allowed(difference).is_some())
}

pub(super) fn allowed(difference: &Difference) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|entry| (entry.covers)(difference))
}
