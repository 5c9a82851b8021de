//! An object and its allocations, for the tests of every step.

use daemons::corrd::Lease;
use daemons::{Allocation, Owner};
use jiff::Timestamp;

use super::observed::{Observed, Users};
use super::plan::Actual;
use crate::attestation::Trust;

#[derive(Clone, Debug)]
pub(super) struct Held {
    id: &'static str,
    owner: Owner,
    pub expires_at: Timestamp,
}

impl Allocation for Held {
    fn id(&self) -> &str {
        self.id
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn device(&self) -> Option<&str> {
        None
    }

    fn lease(&self) -> (u64, Timestamp) {
        (300, self.expires_at)
    }

    fn set_lease(&mut self, lease: Lease) {
        self.expires_at = lease.lease_expires_at;
    }
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(super) fn held(id: &'static str) -> Held {
    Held { id, owner: Owner::new("c", "u").unwrap(), expires_at: at(10_000) }
}

pub(super) fn actual(allocations: &[&'static str], matching: Option<usize>) -> Actual<Held> {
    Actual {
        has_backend: true,
        allocations: Some(allocations.iter().map(|id| held(id)).collect()),
        matching,
        trust: Trust::NotRequired,
    }
}

/// A finalized object and nothing else.
pub(super) fn observed() -> Observed {
    Observed {
        uid: "u".into(),
        namespace: "n".into(),
        name: "o".into(),
        generation: 1,
        is_deleting: false,
        has_finalizer: true,
        intent: None,
        ticket: None,
        is_in_use: false,
        users: Users::default(),
        is_drained: false,
        is_forced: false,
        handle: None,
        phase: None,
        conditions: Vec::new(),
    }
}
