//! Leader election: several replicas, one of which decides.
//!
//! [`candidate`] is the state machine (no I/O, time is an argument); [`runner`] talks to the API server for
//! it; [`tenure`] publishes the outcome to the process; [`fence`] lets no write out of this process
//! without a term that still holds.
//!
//! ```text
//!  sent at t:   renewal ──────────────▶ no other may lead before t + lease duration
//!  this side:   leads until t + renew deadline; every write carries a time-out below the difference
//! ```
//!
//! A process that is stopped and continued may not notice the time that has passed before its next write
//! is on its way. The API server refuses that write: each Binding names the leader that decided it.

mod candidate;
mod fence;
mod identity;
mod lease;
mod runner;
mod settings;
mod tenure;

pub use fence::Fence;
pub(crate) use fence::is_not_leading;
pub use runner::{Election, Leaving};
pub use settings::{ElectionSettings, SettingsError};
pub use tenure::{Tenure, Term};
