//! Pure: how far a new status is from the written one.

use crds::{Phase, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::object::HasStatus as _;
use own_writes::PlacementStatus;

use super::allocated_kind::{AllocatedKind, StatusBase};
use super::observed::Use;

/// How far a new status is from the written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drift {
    /// Inside every deadband.
    None,
    /// A reading or a message changed.
    Reading,
    /// A phase, a reason, a handle or a floor changed: write at once.
    Transition,
}

/// The fields of a status that all kinds have, under names of their own.
pub(crate) struct SharedStatus<'a> {
    pub phase: Option<Phase>,
    pub generation: Option<i64>,
    pub handle: Option<&'a str>,
    pub size: Option<&'a str>,
    pub floor: Option<f64>,
    pub measured: Option<f64>,
    /// Whether there is a reading that only a sample can give.
    pub has_reading: bool,
    pub attestation_expires_at: Option<&'a Time>,
    pub used: Use<'a>,
    pub conditions: &'a [Condition],
}

/// The part of a status by which Pods are placed.
pub(crate) fn placement<K: AllocatedKind>(
    status: &K::Status,
    ticket: Option<String>,
) -> PlacementStatus {
    let SharedStatus { phase, handle, floor, measured, .. } = K::shared(status);
    PlacementStatus { phase, handle: handle.map(str::to_owned), floor, measured, ticket }
}

pub(crate) fn drift<K: AllocatedKind>(object: &K::Object, next: &K::Status) -> Drift {
    let empty = K::Status::default();
    let written = object.status().unwrap_or(&empty);
    let floor = K::floor(object, next);
    let (old, new) = (K::shared(written), K::shared(next));
    if is_transition(&old, &new, floor) {
        return Drift::Transition;
    }
    let has_moved = K::readings_moved(written, next, floor);
    let readings = if has_moved { Drift::Reading } else { Drift::None };
    conditions_drift(old.conditions, new.conditions).max(readings)
}

/// Whether a sample has left the deadband of a reading.
pub(crate) fn has_moved<K: AllocatedKind>(
    object: &K::Object,
    allocation: &K::Allocation,
    sample: &K::Sample,
) -> bool {
    let empty = K::Status::default();
    // Only its readings are compared.
    let next = K::status(Some(allocation), Some(sample), StatusBase::default());
    let written = object.status().unwrap_or(&empty);
    K::readings_moved(written, &next, K::floor(object, &next))
}

/// Whether one reading has left its deadband. One that is missing for a moment stays as it was.
pub(crate) fn reading_moved(
    old: Option<f64>,
    next: Option<f64>,
    has_left: impl FnOnce(f64, f64) -> bool,
) -> bool {
    next.is_some_and(|next| old.is_none_or(|old| has_left(old, next)))
}

fn is_transition(old: &SharedStatus<'_>, new: &SharedStatus<'_>, floor: f64) -> bool {
    // A fall below the floor of a Ready object. Otherwise a crossed floor shows in phase and reason.
    let falls = old.phase == Some(Phase::Ready)
        && new.measured.is_some_and(|it| it < floor)
        && new.measured < old.measured;
    let is_releasing = new.phase == Some(Phase::Releasing);
    let seconds = |it: &SharedStatus<'_>| it.attestation_expires_at.map(|at| at.0.as_second());
    old.phase != new.phase
        || old.generation != new.generation
        || (new.handle.is_some() && old.handle != new.handle)
        || (new.size.is_some() && old.size != new.size)
        || (new.floor.is_some() && old.floor != new.floor)
        || (seconds(new).is_some() && seconds(old) != seconds(new))
        || falls
        // The first reading, unless the object is being released.
        || (!old.has_reading && new.has_reading && !is_releasing)
}

/// How far the new conditions are from the written ones.
pub(crate) fn conditions_drift(old: &[Condition], new: &[Condition]) -> Drift {
    let of_one = |next: &Condition| match condition::find(old, &next.type_) {
        None => Drift::Transition,
        Some(it)
            if (&it.status, &it.reason, it.observed_generation)
                != (&next.status, &next.reason, next.observed_generation) =>
        {
            Drift::Transition
        }
        Some(it) if it.message != next.message => Drift::Reading,
        Some(_) => Drift::None,
    };
    new.iter().map(of_one).max().unwrap_or(Drift::None)
}
