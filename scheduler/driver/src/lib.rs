//! Kubernetes I/O around the engine: watch → translate → engine → act.
//!
//! The driver decides nothing. It hands events to the engine and carries out what comes back;
//! what I/O makes hard to test (unclear replies, relists, writes that cross binds) is kept in
//! plain state machines: [`binding`], [`duty`], [`election`], [`pulse`], [`reply_coalescing`], [`tracker`], [`slots`].

mod act;
mod actions;
mod answers;
mod backends;
mod calls;
mod clock;
mod configuration;
mod devices;
mod duty;
mod election;
mod error;
mod health;
mod hypothetical_pod;
mod intake;
mod journal;
mod kinds;
mod metrics;
mod phases;
mod profile_names;
mod publish;
mod pulse;
mod questions;
mod reply_coalescing;
mod resync;
mod run;
mod settling;
mod shadow;
mod shared;
mod slots;
mod tampering;
#[cfg(test)]
mod tests;
mod time_to_ready;
mod tracker;
mod translate;
mod watch;
mod wire;
mod write;

pub use act::Notice;
pub use configuration::{
    ConfigurationError, Described, KubeSchedulerConfiguration, ProfileError,
    SchedulerConfiguration, described,
};
pub use devices::DeviceObjects;
pub use election::{Election, ElectionSettings, Fence, Leaving, SettingsError, Tenure, Term};
pub use error::DriverError;
pub use health::{Health, KindState};
pub use journal::{Divergence, Journal, JournalError, ReplayError, Replayed, replay};
pub use metrics::{Collectors, Metrics};
pub use pulse::Stuck;
pub use questions::{QuestionError, Questions};
pub use reply_coalescing::ReplyCoalescing;
pub use run::Driver;
pub use shadow::{Shadow, ShadowBook};
pub use watch::WatchEnded;
