//! Events on an object: what a reconcile has found and written.

use controller_runtime::Event;
use crds::Phase;
use crds::condition::{self, not_ready};
use daemons::Allocation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::HasStatus as _;

use super::allocated_kind::AllocatedKind;
use super::observe::Snapshot;
use super::observed::Observed;
use super::plan::{Actual, Op};
use super::readiness::Readiness;

/// What has changed between the former status and the one that was just written.
pub(super) fn of_status_change<K: AllocatedKind>(
    object: &K::Object,
    written: &K::Object,
    snapshot: &Snapshot<K>,
    readiness: &Readiness,
) -> Vec<Event> {
    let (before, after) = (&snapshot.observed, Observed::of::<K>(written));
    let floor = |object: &K::Object| object.status().and_then(|it| K::shared(it).floor);
    let transition = is_transition(before, readiness).then(|| of_readiness(readiness));
    let lost = lost(before, &snapshot.actual, K::BACKEND);
    let update = of_update(&before.conditions, &after.conditions);
    let window = of_window(before, &after, floor(object), floor(written));
    lost.into_iter().chain(transition).chain(update).chain(window).collect()
}

/// An operation that people would not expect.
pub(super) fn of_operation<C>(op: &Op<C>, observed: &Observed) -> Option<Event> {
    let is_forced = matches!(op, Op::Release(_)) && observed.is_forced && observed.is_in_use;
    is_forced.then(|| {
        let message = format!("released by its annotation, though Pods use it: {}", observed.users);
        Event::warning("ForcedRelease", message)
    })
}

/// Whether phase or reason have changed.
fn is_transition(observed: &Observed, readiness: &Readiness) -> bool {
    let ready_before = condition::find(&observed.conditions, condition::READY);
    let same_reason = ready_before.is_some_and(|it| it.reason == readiness.reason);
    observed.phase != Some(readiness.phase) || !same_reason
}

fn of_readiness(readiness: &Readiness) -> Event {
    let Readiness { phase, reason, message } = readiness;
    let is_warning = matches!(phase, Phase::Degraded | Phase::Failed);
    let reason = if *phase == Phase::Ready { "Ready" } else { *reason };
    Event { is_warning, reason, message: format!("{phase}: {message}") }
}

/// The daemon has neither the allocation that the status names nor another in its place.
fn lost<A: Allocation>(observed: &Observed, actual: &Actual<A>, backend: &str) -> Option<Event> {
    let handle = observed.handle.as_ref().filter(|_| !observed.is_deleting)?;
    let held = actual.allocations.as_ref()?;
    let is_lost = actual.matching.is_none() && held.iter().all(|it| it.id() != handle);
    is_lost.then(|| {
        let message = format!("{backend} has lost {handle}; it is allocated anew");
        Event::warning("AllocationLost", message)
    })
}

/// A change of the spec that was refused, or that no ticket allows.
fn of_update(before: &[Condition], after: &[Condition]) -> Option<Event> {
    let pending = condition::find(after, condition::UPDATE_PENDING)?;
    let is_new = condition::find(before, condition::UPDATE_PENDING)
        .is_none_or(|it| (&it.status, &it.reason) != (&pending.status, &pending.reason));
    let reason = match pending.reason.as_str() {
        not_ready::ALLOCATION_REFUSED => "UpdateRefused",
        not_ready::ATTESTATION_FAILED => "UpdateDenied",
        _ => return None,
    };
    (is_new && pending.status == "True").then(|| {
        let message = format!("{}; what was allocated before stays as it is", pending.message);
        Event::warning(reason, message)
    })
}

/// Another floor with an unchanged spec.
fn of_window(
    before: &Observed,
    after: &Observed,
    floor_before: Option<f64>,
    floor_after: Option<f64>,
) -> Option<Event> {
    let (from, to) = floor_before.zip(floor_after)?;
    let generation = |observed: &Observed| {
        condition::find(&observed.conditions, condition::READY)
            .and_then(|it| it.observed_generation)
    };
    let is_same_spec = generation(before) == generation(after) && before.handle == after.handle;
    #[expect(clippy::float_cmp, reason = "whole numbers that a daemon has confirmed")]
    let is_other = from != to;
    (is_same_spec && is_other).then(|| {
        let message = format!("the floor is {to} instead of {from} now, as its schedule asks");
        Event { is_warning: false, reason: "FloorChanged", message }
    })
}

#[cfg(test)]
mod tests;
