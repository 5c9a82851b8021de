//! The rules of kube-scheduler v1.36 in the shortest form that is obviously right.
//!
//! No index, no cache, no state: a decision is a function of a [`Cluster`], a Pod and the
//! [`Rules`] of a profile. It is the reference for every faster implementation, and is
//! itself compared with the real kube-scheduler with `percentageOfNodesToScore: 100`. Quirks of kube-scheduler
//! are reproduced, with a comment at each place.
//!
//! ```text
//! decide ──▶ screen (the Pod as a whole) ──▶ filters on each Node ──▶ scores of those that pass
//!                 │                               │
//!                 └──────── Rejection ◀───────────┘──▶ preempt
//! ```
//!
//! What kube-scheduler leaves to chance is returned as a set: the Nodes with the highest score,
//! the Nodes on which preemption is equally good.

mod affinity_terms;
mod cluster;
mod decide;
mod filters;
mod node_use;
mod preemption;
mod prepared;
mod reason;
mod rejection;
mod rules;
mod scores;
mod spread;
mod trial;
mod wake;

#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;

pub use affinity_terms::{own_term_means, placed_term_means};
pub use cluster::{ByUid, Cluster, NodeUsage};
pub use decide::{
    Decision, Failure, Placement, decide, decide_among, filter, filter_without, fits_somewhere,
};
pub use preemption::{
    CLAIMS_NOT_FOUND, Candidate, Ineligible, PREEMPTION, Preemption, PreemptionDryRun,
    PreemptionRefusal, VictimCost, Victims, candidates, has_leaving_victims, preempt,
    preempt_after, protects, victims_by,
};
pub use reason::{Plugin, Reason};
pub use rejection::{Rejection, nodes_available};
pub use rules::{
    DefaultSpread, ResourceWeight, Rules, ScoringStrategy, ShapePoint, SwitchedOff, Weights,
    cpu_and_memory,
};
pub use scores::{
    NodeScore, PluginScore, ResourceUse, ScoreError, balanced_score, fit_score, score,
};
pub use spread::{Constraint, constraints, has_every_key, score_needs_every_key};
pub use wake::{Chances, Prospect, rejection_may_have_changed};
