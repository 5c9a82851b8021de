//! The scheduling core: events in, decisions out.
//!
//! No I/O, no clock, no threads: the same events at the same times with the same seed give
//! the same decisions, so a journal of events is a complete bug report.
//!
//! ```text
//!                    PodSeen
//!                       │
//!                       ▼          attempt          ┌── Bind ──▶ Binding ──BindDone──▶ Bound
//!   Backoff ──due──▶ Active ────────────────────────┤                │
//!      ▲                ▲                           │           BindRefused
//!      │                │ bandwidth, spec, Ready    │                │
//!      │                ├───────────────── InLine / Aside ◀── an object says no
//!      │                │ a Node fits               │                ▼
//!      └────────────────┴────────────────── Parked ◀┴─ Nodes say no   Backoff
//!                       │ the Pod changes
//!                       └────────────────── Held ◀──── the Pod itself
//! ```
//!
//! How to drive it: hand every event to [`Engine::handle`]; then, while a bind slot is free,
//! call [`Engine::poll`] and act on it; then drain [`Engine::poll_report`]; then sleep until
//! the next event or [`Engine::poll_timeout`], whichever comes first.

mod cycle;
mod decision;
mod engine;
mod event;
mod explain;
mod filters;
mod gate;
mod ledger;
mod line;
mod objects;
mod observe;
mod record;
mod recover;
mod rejection;
mod reports;
mod rng;
mod scores;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
mod uses;
mod wake;
mod when;

mod queue;

pub use decision::{Bind, Held, ObjectUsed, Poll, Report, Work};
pub use engine::{Engine, EngineConfig, Quota, Stats};
pub use event::{Event, Kind, Refusal};
pub use explain::{Dominant, Explanation, LinePosition, NodesExplained, ReasonExplained};
pub use filters::NodeReason;
pub use line::Bypass;
pub use objects::BACKEND_FRESH_FOR;
pub use rejection::{
    Cause, Class, NodesRejection, ObjectRejection, ReasonCount, Rejection, WakeOn,
};
pub use uses::Facts;
pub use when::{Basis, Confidence, Estimate};
