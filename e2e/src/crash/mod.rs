//! The scheduler is killed at an awaited step of its choice, and nothing may show it afterwards.
//!
//! - [`steps`]: what counts as a step, and whose it is.
//! - [`gate`]: stops a life story at its crash point.
//! - [`world`]: a control plane, daemons and proxies, and one scheduler that can be killed.
//! - [`story`]: the life of one Corridor and one MemoryBundle.
//! - [`verdict`]: what must be the same with and without a crash.
//! - [`rehearsal`]: many stories at once, each with a crash point of its own, and one kill for all.
//! - [`exhaustion`]: every crash point there is.
//! - [`endurance`]: random kills during random lives.
//!
//! A story that has reached its crash point is frozen: none of its calls reaches a server any more.
//! When every story of a batch is frozen, one kill ends the process that all of them were served by.
//! So each story sees exactly one crash, at exactly its own point, and a batch costs one restart.

pub mod endurance;
pub mod exhaustion;
pub mod gate;
pub mod ledger;
pub mod rehearsal;
pub mod steps;
pub mod story;
pub mod verdict;
pub mod world;
