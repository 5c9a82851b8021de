//! Pure: wanted, seen and now; at most one operation comes out.

use jiff::{SignedDuration, Timestamp};

use super::facts::{Facts, Intent};
use super::kind::Allocation;
use crate::attestation::Trust;

/// One step. Each leaves a state from which the next pass goes on, also after a crash.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op<C> {
    /// Finalizer and intent in one write, before the daemon hears of it.
    Prepare(Intent),
    Attest {
        device: String,
    },
    Allocate,
    /// Another allocation of this owner that no wish stands behind.
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

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wish<C> {
    /// Why no daemon should be asked for it at all.
    pub invalid: Option<String>,
    pub intent: Intent,
    /// How the allocation in hand differs in place, if there is one.
    pub change: Option<C>,
    /// What might help an allocation that does badly.
    pub remedy: Option<C>,
}

/// What there is.
#[derive(Clone, Debug)]
pub(crate) struct Seen<A> {
    pub has_backend: bool,
    /// `None`: the daemon did not say.
    pub allocations: Option<Vec<A>>,
    /// The one of them that answers the wish.
    pub matching: Option<usize>,
    pub trust: Trust,
}

impl<A> Seen<A> {
    /// The allocation that serves now: the matching one, or the former one of the status.
    pub fn current<'a>(&'a self, facts: &Facts) -> Option<&'a A>
    where
        A: Allocation,
    {
        let all = self.allocations.as_deref()?;
        let former = || all.iter().find(|it| facts.handle.as_deref() == Some(it.id()));
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
    facts: &Facts,
    seen: &Seen<A>,
    wish: &Wish<C>,
    now: Timestamp,
) -> Plan<C> {
    if facts.is_deleting {
        return release(facts, seen, now);
    }
    if !seen.has_backend {
        return nothing();
    }
    let current = seen.current(facts);
    // Whatever else is wrong, what is held is kept.
    if let Some(held) = current.filter(|held| now >= renewal(*held)) {
        return act(Op::RenewLease(held.id().to_owned()));
    }
    if wish.invalid.is_some() {
        return nothing();
    }
    match seen.matching {
        None => reach(facts, seen, wish, current, now),
        Some(_) => keep(facts, seen, wish, current, now),
    }
}

/// Nothing answers the wish yet.
fn reach<A: Allocation, C: Clone>(
    facts: &Facts,
    seen: &Seen<A>,
    wish: &Wish<C>,
    current: Option<&A>,
    now: Timestamp,
) -> Plan<C> {
    if current.is_some() && facts.is_in_use {
        if let Some(op) = attest(&seen.trust, now) {
            return Plan { op: Some(op), waits: Some(Waits::Pods) };
        }
        // In-place parts of the wish do not have to wait.
        return match (&wish.change, current) {
            (Some(change), Some(held)) if seen.trust.allows() => {
                let op = Op::Change(held.id().to_owned(), change.clone());
                Plan { op: Some(op), waits: Some(Waits::Pods) }
            }
            _ => waits(Waits::Pods),
        };
    }
    if current.is_some() && facts.phase == Some(crds::Phase::Ready) {
        return waits(Waits::Announcement);
    }
    if !facts.has_finalizer || facts.intent.as_ref() != Some(&wish.intent) {
        // Without a device the intent would be another one a moment later.
        return match &seen.trust {
            Trust::Denied { .. } | Trust::Unknown { .. } => nothing(),
            _ => act(Op::Prepare(wish.intent.clone())),
        };
    }
    match attest(&seen.trust, now) {
        Some(op) => act(op),
        None if seen.trust.allows() && seen.allocations.is_some() => act(Op::Allocate),
        None => nothing(),
    }
}

/// The wish is answered: tidy up, stay attested, follow the spec.
fn keep<A: Allocation, C: Clone>(
    facts: &Facts,
    seen: &Seen<A>,
    wish: &Wish<C>,
    current: Option<&A>,
    now: Timestamp,
) -> Plan<C> {
    let Some(current) = current else { return nothing() };
    if !facts.has_finalizer {
        return act(Op::Prepare(wish.intent.clone()));
    }
    // The status names the new one first: a reader never holds a handle that is gone.
    if let Some(extra) = seen.extra()
        && facts.handle.as_deref() == Some(current.id())
    {
        return if facts.is_in_use {
            waits(Waits::FormerPods)
        } else {
            act(Op::ReleaseExtra(extra.id().to_owned()))
        };
    }
    if let Some(op) = attest(&seen.trust, now) {
        let is_denied = wish.change.is_some() && !seen.trust.allows();
        return Plan { op: Some(op), waits: is_denied.then_some(Waits::Trust) };
    }
    match (&wish.change, &wish.remedy) {
        (Some(_), _) if !seen.trust.allows() => waits(Waits::Trust),
        (Some(change), _) => act(Op::Change(current.id().to_owned(), change.clone())),
        (None, Some(remedy)) if seen.trust.allows() => {
            act(Op::Change(current.id().to_owned(), remedy.clone()))
        }
        _ => nothing(),
    }
}

/// Never validates and never attests: a bad spec or ticket cannot block the way out.
fn release<A: Allocation, C>(facts: &Facts, seen: &Seen<A>, now: Timestamp) -> Plan<C> {
    if !facts.has_finalizer || !seen.has_backend {
        return nothing();
    }
    let Some(allocations) = &seen.allocations else { return nothing() };
    // A Pod can only be bound to an object that had a handle.
    let was_never_served = facts.handle.is_none() && allocations.is_empty();
    if !was_never_served && !facts.is_drained && !facts.is_forced {
        // Pods still use it, perhaps for hours: it is not let go by forgetting it.
        let due = seen.current(facts).filter(|held| now >= renewal(*held));
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

/// At a third of the lease: two more attempts fit before it is lost.
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
