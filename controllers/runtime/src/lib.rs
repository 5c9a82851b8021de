//! What every controller needs, and nothing about any one API group.
//!
//! A group is a crate of its own. For each of its kinds it implements [`Controller`] and spawns [`run`]:
//!
//! ```text
//! watch of the kind ─┐
//! watches of owned ──┼→ WorkQueue → reconcile(object, memory) → Requeue
//! Triggers ──────────┘              one at a time for each object, bounded for each namespace
//! ```
//!
//! A controller that creates objects, such as Pods, names their kinds in [`Controller::owns`]: each change of an owned
//! object wakes the object that its controller ownerReference names. Changes of related objects, of telemetry or of
//! settings wake by UID, by namespace or all objects through [`Triggers`].
//!
//! Writes go through [`ApiClient`], which gives each call a deadline and each write the field manager of the group.

mod api;
mod controller;
mod events;
mod metrics;
mod owned;
mod runner;
mod triggers;
mod watch;
mod work_queue;

pub use crate::api::{ApiClient, Object, is_certain};
pub use crate::controller::{Attempt, Controller, Outcome};
pub use crate::events::{Event, EventBudget};
pub use crate::metrics::SeriesMaker;
pub use crate::owned::Owned;
pub use crate::runner::run;
pub use crate::triggers::Triggers;
pub use crate::work_queue::{Backoff, Requeue, jitter};
