//! What the driver and the controllers of one process have themselves written about an object.
//!
//! Both halves publish to the API server and read each other there. A status can be forged by any account that may
//! write it, so each half also records here what it writes. A reader compares what the API server shows with that
//! record: a value that was never written is replaced by the last one that was. Where no record exists (at the start,
//! or with one half in another process) the API server is believed; but for `Drained`: a driver of this process that has
//! recorded nothing has not said so.
//!
//! [`Tampering`] is the closed list of differences that both halves count and report.

mod tampering;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use crds::Phase;
use parking_lot::RwLock;

pub use crate::tampering::{TAMPERING_REASON, TAMPERING_REPORTS_MAX, Tampering};

/// The part of a status, and the ticket, by which Pods are placed. Written by the controllers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementStatus {
    pub phase: Option<Phase>,
    /// `corridorId`, `ffmHandle`.
    pub handle: Option<String>,
    /// `floorGbps`, `floorGBs`.
    pub floor: Option<f64>,
    /// `achievableGbps`, `achievedGBs`.
    pub measured: Option<f64>,
    pub ticket: Option<String>,
}

/// The part of a status by which an allocation is released. Written by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub is_in_use: bool,
    /// The generation for which nothing was bound or in flight any more.
    pub drained_generation: Option<i64>,
}

/// The last two writes: a watch lags behind, so the one before the last is no forgery.
#[derive(Clone, Debug)]
struct Written {
    latest: PlacementStatus,
    previous: Option<PlacementStatus>,
}

/// By the UID of the object. Entries are removed with their object.
#[derive(Debug, Default)]
pub struct OwnWrites {
    placement: RwLock<HashMap<String, Written>>,
    usage: RwLock<HashMap<String, Usage>>,
    /// Objects that their own spec or the policies of their namespace have refused.
    refused: RwLock<HashSet<String>>,
    has_driver: AtomicBool,
}

impl OwnWrites {
    /// Called by the controllers before they write a status.
    pub fn record_placement(&self, uid: &str, status: PlacementStatus) {
        let mut all = self.placement.write();
        let previous = match all.remove(uid) {
            Some(written) if written.latest == status => written.previous,
            Some(written) => Some(written.latest),
            None => None,
        };
        all.insert(uid.to_owned(), Written { latest: status, previous });
    }

    /// Called by the controllers before they write a ticket. The rest of the record stays.
    pub fn record_ticket(&self, uid: &str, ticket: &str) {
        let latest = self.placement.read().get(uid).map(|written| written.latest.clone());
        if let Some(latest) = latest {
            self.record_placement(
                uid,
                PlacementStatus { ticket: Some(ticket.to_owned()), ..latest },
            );
        }
    }

    /// What the controllers wrote, given what the API server shows: `shown` itself unless it was never written.
    pub fn authentic_placement(&self, uid: &str, shown: PlacementStatus) -> PlacementStatus {
        match self.placement.read().get(uid) {
            Some(Written { latest, previous })
                if *latest != shown && previous.as_ref() != Some(&shown) =>
            {
                latest.clone()
            }
            _ => shown,
        }
    }

    /// The object's own spec or the policies of its namespace refuse it: its owner has to act, not the site.
    pub fn record_refusal(&self, uid: &str) {
        self.refused.write().insert(uid.to_owned());
    }

    /// Whether the object was ever refused, also if that has been put right since.
    pub fn was_refused(&self, uid: &str) -> bool {
        self.refused.read().contains(uid)
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.placement.write().remove(uid);
        self.usage.write().remove(uid);
        self.refused.write().remove(uid);
    }

    /// The controllers of this process stop writing; those of another process may begin.
    pub fn forget_controllers(&self) {
        self.placement.write().clear();
        self.refused.write().clear();
    }

    /// The driver of this process stops writing; that of another process may begin.
    pub fn forget_driver(&self) {
        self.usage.write().clear();
    }

    /// From now on a driver of this process records its writes here.
    pub fn attach_driver(&self) {
        self.has_driver.store(true, Ordering::Relaxed);
    }

    /// Called by the driver before it writes a status.
    pub fn record_usage(&self, uid: &str, usage: Usage) {
        self.usage.write().insert(uid.to_owned(), usage);
    }

    /// `None`: this process has no driver. `Some(None)`: its driver has not written about this object, so has not said
    /// that the object is drained.
    pub fn usage(&self, uid: &str) -> Option<Option<Usage>> {
        self.has_driver.load(Ordering::Relaxed).then(|| self.usage.read().get(uid).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(floor: f64) -> PlacementStatus {
        PlacementStatus {
            phase: Some(Phase::Ready),
            floor: Some(floor),
            ..PlacementStatus::default()
        }
    }

    #[test]
    fn only_what_was_written_is_believed() {
        let own = OwnWrites::default();
        assert_eq!(own.authentic_placement("u", floor(9.0)), floor(9.0), "no record yet");
        own.record_placement("u", floor(1.0));
        assert_eq!(own.authentic_placement("u", floor(9.0)), floor(1.0));
        own.record_placement("u", floor(2.0));
        own.record_placement("u", floor(2.0));
        assert_eq!(own.authentic_placement("u", floor(1.0)), floor(1.0), "shown late");
        assert_eq!(own.authentic_placement("u", floor(9.0)), floor(2.0));
        own.forget("u");
        assert_eq!(own.authentic_placement("u", floor(9.0)), floor(9.0));
    }

    #[test]
    fn a_driver_without_a_record_is_not_an_absent_driver() {
        let own = OwnWrites::default();
        assert_eq!(own.usage("u"), None);
        own.attach_driver();
        assert_eq!(own.usage("u"), Some(None));
        own.record_usage("u", Usage { is_in_use: true, drained_generation: None });
        assert!(own.usage("u").flatten().is_some_and(|it| it.is_in_use));
    }
}
