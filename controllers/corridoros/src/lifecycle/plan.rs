//! Pure: from what was observed, the actual allocations and the desired one to at most one operation.

use daemons::Allocation;
use jiff::{SignedDuration, Timestamp};

use super::observed::{Intent, Observed};
use crate::attestation::Trust;

/// One operation. Each leaves a state from which the next reconcile goes on, also after a crash.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op<C> {
    /// Finalizer and intent in one write, before the first call to the daemon.
    Prepare(Intent),
    Attest {
        device: String,
    },
    Allocate,
    /// Another allocation of this owner, which the spec does not ask for.
    ReleaseExtra(String),
    RenewLease(String),
    Change(String, C),
    /// The object is being deleted.
    Release(String),
    DropFinalizer,
}

impl<C> Op<C> {
    pub fn step(&self) -> Step {
        match self {
            Self::Prepare(_) | Self::DropFinalizer => Step::Metadata,
            Self::Attest { .. } => Step::Attest,
            Self::Allocate => Step::Allocate,
            Self::ReleaseExtra(_) | Self::Release(_) => Step::Release,
            Self::RenewLease(_) => Step::RenewLease,
            Self::Change(..) => Step::Change,
        }
    }
}

/// Which step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Metadata,
    List,
    Attest,
    Allocate,
    Change,
    RenewLease,
    Release,
}

/// What the spec asks for.
#[derive(Clone, Debug)]
pub(crate) struct Desired<C> {
    /// Why no daemon is asked for it at all.
    pub invalid: Option<String>,
    pub intent: Intent,
    /// How the allocation in hand differs in place, if there is one.
    pub change: Option<C>,
    /// What might help an allocation in bad health.
    pub remedy: Option<C>,
}

/// What the daemon holds, and whether it may be changed.
#[derive(Clone, Debug)]
pub(crate) struct Actual<A> {
    pub has_backend: bool,
    /// `None`: not known.
    pub allocations: Option<Vec<A>>,
    /// The one of them that satisfies the spec.
    pub matching: Option<usize>,
    pub trust: Trust,
}

impl<A> Actual<A> {
    /// The allocation that serves now: the matching one, or the former one of the status.
    pub fn current<'a>(&'a self, observed: &Observed) -> Option<&'a A>
    where
        A: Allocation,
    {
        let all = self.allocations.as_deref()?;
        let former = || all.iter().find(|it| observed.handle.as_deref() == Some(it.id()));
        self.matching.and_then(|index| all.get(index)).or_else(former)
    }

    fn extra(&self) -> Option<&A> {
        let mut all = self.allocations.iter().flatten().enumerate();
        all.find(|(index, _)| Some(*index) != self.matching).map(|(_, extra)| extra)
    }
}

/// What to do now, and what has to wait for something else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan<C> {
    pub op: Option<Op<C>>,
    pub waits: Option<Waits>,
}

/// What a plan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Only another allocation would do, and Pods use this one.
    Pods,
    /// The status must say `Allocating` first, so that no Pod is placed meanwhile.
    Announcement,
    /// Pods still use the former allocation.
    FormerPods,
    /// The scheduler has not answered yet that nothing uses it.
    Drain,
    /// No good ticket, no change.
    Trust,
}

pub(crate) fn plan<A: Allocation, C: Clone>(
    observed: &Observed,
    actual: &Actual<A>,
    desired: &Desired<C>,
    now: Timestamp,
) -> Plan<C> {
    if observed.is_deleting {
        return release(observed, actual, now);
    }
    if !actual.has_backend {
        return nothing();
    }
    let current = actual.current(observed);
    // A lease is renewed whatever else is wrong.
    if let Some(held) = current.filter(|held| now >= renewal(*held)) {
        return act(Op::RenewLease(held.id().to_owned()));
    }
    if desired.invalid.is_some() {
        return nothing();
    }
    match actual.matching {
        None => reach(observed, actual, desired, current, now),
        Some(_) => keep(observed, actual, desired, current, now),
    }
}

/// No allocation satisfies the spec yet.
fn reach<A: Allocation, C: Clone>(
    observed: &Observed,
    actual: &Actual<A>,
    desired: &Desired<C>,
    current: Option<&A>,
    now: Timestamp,
) -> Plan<C> {
    if current.is_some() && observed.is_in_use {
        if let Some(op) = attest(&actual.trust, now) {
            return Plan { op: Some(op), waits: Some(Waits::Pods) };
        }
        // Changes in place do not have to wait.
        return match (&desired.change, current) {
            (Some(change), Some(held)) if actual.trust.allows() => {
                let op = Op::Change(held.id().to_owned(), change.clone());
                Plan { op: Some(op), waits: Some(Waits::Pods) }
            }
            _ => waits(Waits::Pods),
        };
    }
    if current.is_some() && observed.phase == Some(crds::Phase::Ready) {
        return waits(Waits::Announcement);
    }
    if !observed.has_finalizer || observed.intent.as_ref() != Some(&desired.intent) {
        // Without a device the intent would change a moment later.
        return match &actual.trust {
            Trust::Denied { .. } | Trust::Unknown { .. } => nothing(),
            _ => act(Op::Prepare(desired.intent.clone())),
        };
    }
    match attest(&actual.trust, now) {
        Some(op) => act(op),
        None if actual.trust.allows() && actual.allocations.is_some() => act(Op::Allocate),
        None => nothing(),
    }
}

/// An allocation satisfies the spec: release others, stay attested, change in place.
fn keep<A: Allocation, C: Clone>(
    observed: &Observed,
    actual: &Actual<A>,
    desired: &Desired<C>,
    current: Option<&A>,
    now: Timestamp,
) -> Plan<C> {
    let Some(current) = current else { return nothing() };
    if !observed.has_finalizer {
        return act(Op::Prepare(desired.intent.clone()));
    }
    // The status names the new allocation first, so that no reader holds a handle that is gone.
    if let Some(extra) = actual.extra()
        && observed.handle.as_deref() == Some(current.id())
    {
        return if observed.is_in_use {
            waits(Waits::FormerPods)
        } else {
            act(Op::ReleaseExtra(extra.id().to_owned()))
        };
    }
    if let Some(op) = attest(&actual.trust, now) {
        let is_denied = desired.change.is_some() && !actual.trust.allows();
        return Plan { op: Some(op), waits: is_denied.then_some(Waits::Trust) };
    }
    match (&desired.change, &desired.remedy) {
        (Some(_), _) if !actual.trust.allows() => waits(Waits::Trust),
        (Some(change), _) => act(Op::Change(current.id().to_owned(), change.clone())),
        (None, Some(remedy)) if actual.trust.allows() => {
            act(Op::Change(current.id().to_owned(), remedy.clone()))
        }
        _ => nothing(),
    }
}

/// Never validates and never attests: a bad spec or ticket cannot block a deletion.
fn release<A: Allocation, C>(observed: &Observed, actual: &Actual<A>, now: Timestamp) -> Plan<C> {
    if !observed.has_finalizer || !actual.has_backend {
        return nothing();
    }
    let Some(allocations) = &actual.allocations else { return nothing() };
    // A Pod can only be bound to an object that had a handle.
    let was_never_served = observed.handle.is_none() && allocations.is_empty();
    if !was_never_served && !observed.is_drained && !observed.is_forced {
        // Pods may use the allocation for hours, so its lease is still renewed.
        let due = actual.current(observed).filter(|held| now >= renewal(*held));
        let op = due.map(|held| Op::RenewLease(held.id().to_owned()));
        return Plan { op, waits: Some(Waits::Drain) };
    }
    match allocations.first() {
        Some(left) => act(Op::Release(left.id().to_owned())),
        None => act(Op::DropFinalizer),
    }
}

/// A ticket is fetched when there is no good one, and again before it expires.
fn attest<C>(trust: &Trust, now: Timestamp) -> Option<Op<C>> {
    let device = match trust {
        Trust::Ask { device, .. } => device,
        Trust::Good { device, renew_at, .. } if now >= *renew_at => device,
        _ => return None,
    };
    Some(Op::Attest { device: device.clone() })
}

/// At a third of the lease, so that two more attempts fit before it is lost.
pub(crate) fn renewal<A: Allocation>(held: &A) -> Timestamp {
    let (ttl, expires_at) = held.lease();
    let ttl_ms = i64::try_from(ttl).unwrap_or(i64::MAX).saturating_mul(1000);
    let rest = SignedDuration::from_millis(ttl_ms / 3 * 2);
    expires_at.checked_sub(rest).unwrap_or(Timestamp::MIN)
}

fn act<C>(op: Op<C>) -> Plan<C> {
    Plan { op: Some(op), waits: None }
}

fn waits<C>(waits: Waits) -> Plan<C> {
    Plan { op: None, waits: Some(waits) }
}

fn nothing<C>() -> Plan<C> {
    Plan { op: None, waits: None }
}

#[cfg(test)]
mod tests;
