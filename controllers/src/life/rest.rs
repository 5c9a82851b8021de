//! When an object is at rest, and when it is looked at again.

use std::time::Duration;

use jiff::Timestamp;

use super::calm::Calm;
use super::kind::{Allocation, Health, Kind};
use super::observe::{Found, LISTING_AGE_MAX};
use super::plan::{self, Plan, Waits};
use super::walk::{Memory, PAUSE_MIN};
use crate::attestation::Trust;
use crate::work_queue::Requeue;

/// A lease that is renewed changes nothing else. If nothing else is to be done, that is known without
/// another pass: with many objects these passes are most of what they cost.
pub(super) fn renewed<K: Kind>(
    object: &K::Object,
    found: &mut Found<K>,
    health: &Health<K::Change>,
    memory: &mut Memory<K>,
    now: Timestamp,
) -> Option<Requeue> {
    found.seen.allocations = memory.listing.as_ref().map(|it| it.allocations.clone());
    let plan = plan::plan(&found.facts, &found.seen, &found.wish, now);
    if plan.op.is_some() || plan.waits.is_some() || memory.trouble.is_some() {
        return None;
    }
    memory.last_op = None;
    memory.calm = calm::<K>(found, health);
    Some(rest::<K>(object, found, health, &plan, memory, now))
}

pub(super) fn calm<K: Kind>(found: &Found<K>, health: &Health<K::Change>) -> Option<Calm> {
    let current = found.seen.current(&found.facts)?;
    let fault = health.fault.as_ref().map(|(reason, _)| *reason);
    Some(Calm { id: current.id().to_owned(), fault })
}

/// Nothing to do now: when to look again.
pub(super) fn rest<K: Kind>(
    object: &K::Object,
    found: &Found<K>,
    health: &Health<K::Change>,
    plan: &Plan<K::Change>,
    memory: &Memory<K>,
    now: Timestamp,
) -> Requeue {
    if plan.waits == Some(Waits::Announcement) {
        return Requeue::Now;
    }
    let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
    let trust = match &found.seen.trust {
        Trust::Good { renew_at, expires_at, .. } => {
            // A renewal that failed is tried again by its own pause, until it is too late.
            Some(until(if *renew_at > now { *renew_at } else { *expires_at }))
        }
        _ => None,
    };
    let lease = found.seen.current(&found.facts).map(|held| until(plan::renewal(held)));
    let change = K::next_change(object, now).map(until);
    let routine = memory.routine_at.filter(|at| *at > now).map(until);
    let pauses = [trust, lease, change, routine, health.look_again];
    let next = pauses.into_iter().flatten().min().unwrap_or(LISTING_AGE_MAX);
    Requeue::After(next.clamp(PAUSE_MIN, LISTING_AGE_MAX))
}
