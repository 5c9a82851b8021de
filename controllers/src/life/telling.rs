//! What people are told by Events on an object, of what a pass has found and written.

use crds::Phase;
use crds::condition::{self, not_ready};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::event_budget::EventBudget;
use super::facts::Facts;
use super::kind::{Allocation, Kind};
use super::observe::Found;
use super::plan::Op;
use super::verdict::Verdict;
use crate::context::Context;
use crate::kubernetes;

/// One Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Telling {
    is_warning: bool,
    reason: &'static str,
    message: String,
}

impl Telling {
    fn warning(reason: &'static str, message: String) -> Self {
        Self { is_warning: true, reason, message }
    }
}

/// What a status that has just been written says that the one before did not.
pub(super) fn news<K: Kind>(
    object: &K::Object,
    written: &K::Object,
    found: &Found<K>,
    verdict: &Verdict,
) -> Vec<Telling> {
    let (before, after) = (&found.facts, K::facts(written));
    let floor = |object: &K::Object| K::placement(&K::own_status(object), None).floor;
    let transition = is_transition(before, verdict).then(|| of_verdict(verdict));
    let lost = lost::<K>(found);
    let update = of_update(&before.conditions, &after.conditions);
    let window = of_window(before, &after, floor(object), floor(written));
    lost.into_iter().chain(transition).chain(update).chain(window).collect()
}

/// What is about to be done that people would not expect.
pub(super) fn of_operation<C>(op: &Op<C>, facts: &Facts) -> Option<Telling> {
    let is_forced = matches!(op, Op::Release(_)) && facts.is_forced && facts.is_in_use;
    is_forced.then(|| {
        let message = format!("released by its annotation, though Pods use it: {}", facts.users);
        Telling::warning("ForcedRelease", message)
    })
}

/// Whether people have something new to be told of how the object does.
fn is_transition(facts: &Facts, verdict: &Verdict) -> bool {
    let ready_before = condition::find(&facts.conditions, condition::READY);
    let same_reason = ready_before.is_some_and(|it| it.reason == verdict.reason);
    facts.phase != Some(verdict.phase) || !same_reason
}

fn of_verdict(verdict: &Verdict) -> Telling {
    let Verdict { phase, reason, message } = verdict;
    let is_warning = matches!(phase, Phase::Degraded | Phase::Failed);
    let reason = if *phase == Phase::Ready { "Ready" } else { *reason };
    Telling { is_warning, reason, message: format!("{phase}: {message}") }
}

/// The daemon has no allocation of the handle that the status names, and none in its place.
fn lost<K: Kind>(found: &Found<K>) -> Option<Telling> {
    let handle = found.facts.handle.as_ref().filter(|_| !found.facts.is_deleting)?;
    let held = found.seen.allocations.as_ref()?;
    let is_lost = found.seen.matching.is_none() && held.iter().all(|it| it.id() != handle);
    is_lost.then(|| {
        let message = format!("{} has lost {handle}; it is allocated anew", K::BACKEND);
        Telling::warning("AllocationLost", message)
    })
}

/// A change of the spec that was refused, or that no ticket allows.
fn of_update(before: &[Condition], after: &[Condition]) -> Option<Telling> {
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
        Telling::warning(reason, message)
    })
}

/// Another floor, though nobody has changed the spec.
fn of_window(
    before: &Facts,
    after: &Facts,
    floor_before: Option<f64>,
    floor_after: Option<f64>,
) -> Option<Telling> {
    let (from, to) = floor_before.zip(floor_after)?;
    let observed = |facts: &Facts| {
        condition::find(&facts.conditions, condition::READY).and_then(|it| it.observed_generation)
    };
    let is_same_spec = observed(before) == observed(after) && before.handle == after.handle;
    #[expect(clippy::float_cmp, reason = "whole numbers that a daemon has confirmed")]
    let is_other = from != to;
    (is_same_spec && is_other).then(|| {
        let message = format!("the floor is {to} instead of {from} now, as its schedule asks");
        Telling { is_warning: false, reason: "FloorChanged", message }
    })
}

/// Writes them, as far as the object's budget goes.
pub(super) async fn tell<K: Kind>(
    context: &Context,
    object: &K::Object,
    tellings: impl IntoIterator<Item = Telling>,
    budget: &mut EventBudget,
) {
    for Telling { is_warning, reason, message } in tellings {
        if budget.take(Timestamp::now()) {
            kubernetes::post_event(&context.client, object, is_warning, reason, &message).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn pending(status: &str, reason: &str) -> Vec<Condition> {
        vec![Condition {
            type_: condition::UPDATE_PENDING.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "no".to_owned(),
            observed_generation: Some(2),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }]
    }

    #[test]
    fn an_update_that_is_refused_or_denied_is_told_once() {
        let told = |before: &[Condition], reason: &str| {
            of_update(before, &pending("True", reason)).map(|it| it.reason)
        };
        let idle = pending("False", "UpToDate");
        assert_eq!(told(&idle, "AllocationRefused"), Some("UpdateRefused"));
        assert_eq!(told(&idle, "AttestationFailed"), Some("UpdateDenied"));
        assert_eq!(told(&[], "AttestationFailed"), Some("UpdateDenied"));
        assert_eq!(told(&pending("True", "AttestationFailed"), "AttestationFailed"), None);
        assert_eq!(told(&idle, "Updating"), None, "it goes well");
        assert_eq!(of_update(&pending("True", "AllocationRefused"), &idle), None, "it is over");
    }
}
