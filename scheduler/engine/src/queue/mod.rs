//! Where a Pod waits. Each waiting Pod is in exactly one of these, or in a corridor's line.

mod active;
mod backoff;
mod order;
mod parked;
mod throttle;

pub(crate) use active::ActiveQueue;
pub(crate) use backoff::{BackoffQueue, backoff_after};
pub(crate) use order::Order;
pub(crate) use parked::{ParkKey, Parked};
pub(crate) use throttle::NamespaceThrottle;
