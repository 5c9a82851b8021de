//! Kubernetes I/O around the engine: watch → translate → engine → act.
//!
//! The driver decides nothing. It hands events to the engine and carries out what comes back;
//! what I/O makes hard to test (unclear replies, relists, writes that cross binds) is kept in
//! plain state machines: [`binding`], [`tracker`], [`slots`].

mod act;
mod binding;
mod clock;
mod configuration;
mod followed;
mod health;
mod intake;
mod metrics;
mod questions;
mod run;
mod slots;
mod tampering;
#[cfg(test)]
mod tests;
mod tracker;
mod translate;
mod watch;
mod wire;

pub use configuration::{ConfigurationError, KubeSchedulerConfiguration, SchedulerConfiguration};
pub use health::{Health, KindState};
pub use metrics::Metrics;
pub use questions::{QuestionError, Questions};
pub use run::{Driver, DriverError};
