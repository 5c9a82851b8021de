//! The queues. Each waiting Pod is in exactly one of them:
//!
//! - `active`: to be tried now, in order of priority
//! - `backoff`: to be tried again at a known time
//! - `parked`: fits on no Node; woken by a change of the cluster
//! - `bandwidth`: one queue per Corridor or MemoryBundle; woken when bandwidth returns
//! - `throttle`: its namespace has too many Bindings without an outcome

mod active;
mod backoff;
mod bandwidth;
mod order;
mod parked;
mod throttle;

pub(crate) use active::ActiveQueue;
pub(crate) use backoff::{BackoffQueue, backoff_after};
pub use bandwidth::Bypass;
pub(crate) use bandwidth::{BandwidthQueue, QueuePosition, Rank, UnblockOn, Waiting};
pub(crate) use order::Order;
pub(crate) use parked::{ParkKey, Parked};
pub(crate) use throttle::NamespaceThrottle;
