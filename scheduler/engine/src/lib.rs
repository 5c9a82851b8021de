//! The scheduling core: events in, decisions out.
//!
//! No I/O, no clock, no threads: the same events at the same times with the same seed give
//! the same decisions, so a journal of events is a complete bug report.
//!
//! Where a Pod is, and how it gets there and away ([`Stage`](record::Stage)):
//!
//! | stage | enters | leaves |
//! |---|---|---|
//! | Active | seen, woken, its back-off over | `schedule_one` tries it |
//! | Binding | placed: its binding cycle begins | Bound by `BindDone`, Backoff if it is given up (`binding_cycle.rs`) |
//! | Bound | the API server says so | with the Pod |
//! | InQueue, Blocked | an object says no | bandwidth, a spec, Ready, a policy |
//! | Parked | Nodes say no | a Node may take it now |
//! | OnHold | the Pod itself cannot be placed | the Pod changes |
//! | Backoff | a Binding was given up | its time is over |
//! | Throttled | its namespace has too many Bindings without an outcome | one of them ends |
//! | Reporting | a report on it is being written | the write ends |
//! | Gated | it has scheduling gates, or is being deleted | its gates are removed |
//! | Finished | it has ended | with the Pod |
//!
//! How to drive it: hand every event to [`Engine::handle`]; then, while a bind slot is free,
//! call [`Engine::poll`] and act on it; then drain [`Engine::poll_action`] and [`Engine::poll_report`]; then sleep until
//! the next event or [`Engine::poll_timeout`], whichever comes first.

mod binding_cycle;
mod cluster_sync;
mod corridor;
mod decision;
mod device_classes;
mod devices;
mod dominant;
mod engine;
mod evaluation;
mod event;
mod excluded_nodes;
mod explain;
mod foreign_nominations;
mod ledger;
mod nodes_rejection;
mod nomination;
mod objects;
mod observe;
mod opinion;
mod pending_summary;
mod placing;
mod preempt;
mod profile;
mod queue_metrics;
mod record;
mod records;
mod recover;
mod rejection;
mod reports;
mod resource_units;
mod rng;
mod schedule_one;
mod serde_due;
mod snapshot;
mod stages;
mod stats;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
mod throttling;
mod timers;
mod transaction;
mod uses;
mod volumes;
mod wake;
mod wakes_on;
mod when;

mod queue;

pub use decision::{
    Action, Bind, ConditionReason, Eviction, ObjectUsed, Poll, Prepare, PrepareWrite, Report,
    Unschedulable, Work,
};
pub use dominant::Dominant;
pub use engine::{Engine, EngineConfig, Quota};
pub use event::{BindRefusal, BindRefusalCause, Event, EvictionStep, SelectorEvaluation};
pub use explain::{
    Explanation, LinePosition, NodesExplained, PreemptionExplained, ReasonExplained,
};
pub use objects::BACKEND_FRESH_FOR;
pub use observe::{Watched, WatchedId, WatchedKind};
pub use opinion::{ForeignPod, NodeOpinion, Opinion};
pub use pending_summary::PendingSummary;
pub use placing::CacheLimit;
pub use profile::{Profile, Profiles};
pub use queue::Bypass;
pub use queue_metrics::{AttemptHistory, FailedAttempts, Queue, QueueMetrics, QueuedBy};
pub use rejection::{
    Cause, FailedAttempt, Fingerprint, NodesRejection, ObjectRejection, ReasonCount, Rejection,
};
pub use reports::EventQueue;
/// What a Pod that waits for its volumes is told.
pub use rules::{ClaimDiagnosis, ClaimState, VolumeDiagnosis, VolumesLacking, VolumesLookedAt};
/// The arguments of kube-scheduler's plugins, which a configuration can change.
pub use rules::{
    ClusterObject, ClusterObjectId, ClusterObjectKind, DefaultSpread, Plugin, Point,
    ResourceWeight, Role, Rules, ScoringStrategy, ShapePoint, SwitchedOff,
};
pub use snapshot::Snapshot;
pub use stats::Stats;
pub use uses::Facts;
pub use wakes_on::WakeOn;
pub use when::{Basis, Confidence, Estimate};
