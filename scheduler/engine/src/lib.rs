//! The scheduling core: events in, decisions out.
//!
//! No I/O, no clock, no threads: the same events at the same times with the same seed give
//! the same decisions, so a journal of events is a complete bug report.
//!
//! ```text
//!                   Seen(Pod)
//!                       │
//!                       ▼       schedule_one        ┌── Bind ──▶ Binding ──BindDone──▶ Bound
//!   Backoff ──due──▶ Active ────────────────────────┤                │
//!      ▲                ▲                           │           BindRefused
//!      │                │ bandwidth, spec, Ready    │                │
//!      │                ├───────────────── InQueue / Blocked ◀─ an object says no
//!      │                │ a Node fits               │                ▼
//!      └────────────────┴────────────────── Parked ◀┴─ Nodes say no   Backoff
//!                       │ the Pod changes
//!                       └────────────────── OnHold ◀── the Pod itself
//! ```
//!
//! How to drive it: hand every event to [`Engine::handle`]; then, while a bind slot is free,
//! call [`Engine::poll`] and act on it; then drain [`Engine::poll_action`] and [`Engine::poll_report`]; then sleep until
//! the next event or [`Engine::poll_timeout`], whichever comes first.

mod cluster_sync;
mod corridor;
mod decision;
mod device_classes;
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
mod wake;
mod wakes_on;
mod when;
mod written;

mod queue;

pub use decision::{
    Action, Bind, ConditionReason, Eviction, ObjectUsed, Poll, Report, Unschedulable, Work,
};
pub use dominant::Dominant;
pub use engine::{Engine, EngineConfig, Quota};
pub use event::{BindRefusal, BindRefusalCause, Event, EvictionStep};
pub use explain::{
    Explanation, LinePosition, NodesExplained, PreemptionExplained, ReasonExplained,
};
pub use objects::BACKEND_FRESH_FOR;
pub use observe::{Watched, WatchedId, WatchedKind};
pub use opinion::{Candidate, NodeOpinion, Opinion};
pub use pending_summary::PendingSummary;
pub use placing::CacheLimit;
pub use profile::{Profile, Profiles};
pub use queue::Bypass;
pub use queue_metrics::{AttemptHistory, FailedAttempts, Queue, QueueMetrics, QueuedBy};
pub use rejection::{Cause, Class, NodesRejection, ObjectRejection, ReasonCount, Rejection};
pub use reports::EventQueue;
/// The arguments of kube-scheduler's plugins, which a configuration can change.
pub use rules::{
    DefaultSpread, Plugin, Point, ResourceWeight, Role, Rules, ScoringStrategy, ShapePoint,
    SwitchedOff,
};
pub use snapshot::Snapshot;
pub use stats::Stats;
pub use uses::Facts;
pub use wakes_on::WakeOn;
pub use when::{Basis, Confidence, Estimate};
