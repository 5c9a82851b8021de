//! The journal: every call to the engine and what came out of it, in a ring of bounded size. Since the engine is
//! a function of its calls, a journal is a complete report of what it did, and why can be found out at leisure.
//!
//! ```text
//!   driver ──▶ Recorded ──▶ engine
//!                  │ while questions are asked: the same entries, and the questions behind them
//!                  ├──────────────────▶ twin (a thread) ──▶ engine ──▶ answers
//!                  │                      ▲ at its start: the current segment
//!                  │ batches of entries, and now and then a snapshot
//!                  ▼                      │
//!               keeper (a thread) ──▶ ring: two segments ──▶ /api/journal
//!                  │ when something goes wrong
//!                  ▼
//!               writer (a thread) ──▶ files
//! ```
//!
//! A segment begins with a snapshot of the engine. When it is full the next one begins, and the one before the
//! previous is dropped; so a journal always reaches back at least one full segment, if there was one.

mod asking;
mod call;
mod files;
mod keeper;
mod lines;
mod recorded;
mod replay;
mod ring;
#[cfg(test)]
mod tests;
mod twin;
mod writer;

pub(crate) use keeper::{Dump, Settings};
pub use keeper::{Journal, JournalError};
pub(crate) use recorded::Recorded;
pub use replay::{Divergence, ReplayError, Replayed, replay};
