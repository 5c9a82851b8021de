//! Whether an object is steady, and when it is reconciled again.

use std::time::Duration;

use controller_runtime::Requeue;
use daemons::Allocation as _;
use jiff::Timestamp;

use super::allocated_kind::AllocatedKind;
use super::observe::LISTING_AGE_MAX;
use super::plan::{self, Plan, Waits};
use super::reconcile::{DELAY_MIN, Reconcile};
use super::steady::Steady;
use crate::attestation::Trust;

impl<K: AllocatedKind> Reconcile<'_, K> {
    /// The renewal of a lease changes nothing else. If nothing else is due, no second reconcile has to find that out:
    /// with many objects these would be most of the cost.
    pub(super) fn after_renewal(&mut self) -> Option<Requeue> {
        let listing = self.memory.listing.as_ref();
        self.snapshot.actual.allocations = listing.map(|it| it.allocations.clone());
        let plan = self.plan();
        if plan.op.is_some() || plan.waits.is_some() || self.memory.last_error.is_some() {
            return None;
        }
        self.memory.last_op = None;
        self.memory.steady = self.steady();
        Some(self.requeue_after(&plan))
    }

    pub(super) fn steady(&self) -> Option<Steady> {
        let current = self.snapshot.current()?;
        let fault = self.health.fault.as_ref().map(|(reason, _)| *reason);
        Some(Steady { id: current.id().to_owned(), fault })
    }

    /// No operation is due now: when one may be.
    pub(super) fn requeue_after(&self, plan: &Plan<K::Change>) -> Requeue {
        if plan.waits == Some(Waits::Announcement) {
            return Requeue::Now;
        }
        let now = self.now;
        let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
        let trust = match &self.snapshot.actual.trust {
            Trust::Good { renew_at, expires_at, .. } => {
                // A renewal that failed is retried after its back-off, until the ticket expires.
                Some(until(if *renew_at > now { *renew_at } else { *expires_at }))
            }
            _ => None,
        };
        let lease = self.snapshot.current().map(|held| until(plan::renewal(held)));
        let change = K::next_change(self.object, now).map(until);
        let readings = self.memory.readings_due_at.filter(|at| *at > now).map(until);
        let delays = [trust, lease, change, readings, self.health.recheck_after];
        let next = delays.into_iter().flatten().min().unwrap_or(LISTING_AGE_MAX);
        Requeue::After(next.clamp(DELAY_MIN, LISTING_AGE_MAX))
    }
}
