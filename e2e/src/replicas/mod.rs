//! Several schedulers, one of which leads, under load: killed, stopped and continued, restarted in turn,
//! cut off.
//!
//! Each has a [`line`] of its own to the API server, so that a test can hold up or cut what it says.
//! The policies of `config/admission/` are installed, the daemons are real processes.

pub mod line;
pub mod load;
pub mod rounds;
pub mod site;

use std::time::Duration;

/// Short, so that many changes of leader fit into a test.
pub const LEASE_DURATION: Duration = Duration::from_secs(3);
/// A new leader waits so long before it lists the Pods and decides.
pub const SETTLE: Duration = Duration::from_secs(1);
/// What is allowed beyond the Lease: to notice, to list, to decide.
pub const SLACK: Duration = Duration::from_secs(2);
