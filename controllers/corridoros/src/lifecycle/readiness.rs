//! Pure: phase, reason and conditions of an object.

use std::time::Duration;

use crds::condition::{self, not_ready};
use crds::{Phase, annotations, condition::ATTESTED};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::observed::Observed;
use super::plan::{Step, Waits};
use crate::attestation::Trust;
use crate::telemetry_cache::Flow;

/// An operation that failed, in this reconcile or an earlier one, and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepError {
    pub step: Step,
    /// The daemon answered, and refused.
    pub is_refusal: bool,
    pub message: String,
}

/// Everything that a status depends on.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, and they are independent")]
pub(crate) struct StatusInput<'a> {
    pub observed: &'a Observed,
    pub backend: &'static str,
    pub has_backend: bool,
    pub flow: Flow,
    pub unreachable_after: Duration,
    pub invalid: Option<&'a str>,
    pub trust: &'a Trust,
    /// Whether attestd is configured.
    pub has_attestd: bool,
    pub is_allocated: bool,
    /// The allocation satisfies the spec, changes in place aside.
    pub is_matching: bool,
    pub has_extras: bool,
    pub has_change: bool,
    pub waits: Option<Waits>,
    pub fault: Option<&'a (&'static str, String)>,
    pub last_error: Option<&'a StepError>,
}

impl StatusInput<'_> {
    /// Whether telemetry has stopped for longer than counts as fresh.
    pub fn is_silent(&self) -> bool {
        matches!(&self.flow, Flow::Silent(silent, _) if *silent >= self.unreachable_after)
    }
}

/// Why an object is Ready or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub phase: Phase,
    pub reason: &'static str,
    pub message: String,
}

/// Reason of `Ready=True`.
pub(crate) const FLOOR_MET: &str = "FloorMet";

fn readiness(phase: Phase, reason: &'static str, message: impl Into<String>) -> Readiness {
    Readiness { phase, reason, message: message.into() }
}

/// The first obstacle, in the order in which a person would remove them.
pub(crate) fn decide(input: &StatusInput<'_>) -> Readiness {
    let away = format!("{} is not configured", input.backend);
    if input.observed.is_deleting {
        return if input.has_backend {
            readiness(Phase::Releasing, not_ready::RELEASING, releasing(input))
        } else {
            readiness(Phase::Releasing, not_ready::BACKEND_NOT_CONFIGURED, away)
        };
    }
    if !input.has_backend {
        return readiness(Phase::Pending, not_ready::BACKEND_NOT_CONFIGURED, away);
    }
    if let Some(why) = input.invalid {
        return readiness(Phase::Failed, not_ready::ALLOCATION_REFUSED, why);
    }
    unreachable(input).or_else(|| untrusted(input)).unwrap_or_else(|| served(input))
}

fn releasing(input: &StatusInput<'_>) -> String {
    match (input.waits, input.last_error) {
        (_, Some(last_error)) => last_error.message.clone(),
        (Some(Waits::Drain), None) if input.observed.users.is_empty() => {
            "waits until the scheduler says that no Pod uses it".to_owned()
        }
        (Some(Waits::Drain), None) => format!(
            "waits until no Pod uses it: {}; end them, or set the annotation {}=\"true\" to release it all the same",
            input.observed.users,
            annotations::FORCE_RELEASE,
        ),
        _ => format!("being released at {}", input.backend),
    }
}

fn unreachable(input: &StatusInput<'_>) -> Option<Readiness> {
    let silence = match &input.flow {
        Flow::Silent(_, why) if input.is_silent() => Some(why.as_str()),
        _ => None,
    };
    let failed = input.last_error.filter(|it| !it.is_refusal && it.step != Step::Attest);
    // One failed call does not count while telemetry flows and the allocation is there.
    let failed = failed.filter(|_| !input.is_allocated).map(|it| it.message.as_str());
    let why = silence.or(failed)?;
    let has_handle = input.is_allocated || input.observed.handle.is_some();
    let phase = if has_handle { Phase::Degraded } else { Phase::Pending };
    Some(readiness(phase, not_ready::BACKEND_UNREACHABLE, why))
}

fn untrusted(input: &StatusInput<'_>) -> Option<Readiness> {
    let attest_failed = input.last_error.filter(|it| it.step == Step::Attest);
    let message = match input.trust {
        Trust::NotRequired | Trust::Good { .. } => return None,
        Trust::Unknown { message } if !input.has_attestd => {
            let phase = if input.is_allocated { Phase::Degraded } else { Phase::Pending };
            return Some(readiness(phase, not_ready::BACKEND_NOT_CONFIGURED, message.clone()));
        }
        Trust::Denied { message, .. } | Trust::Unknown { message } => message.clone(),
        Trust::Ask { fault, .. } => match (attest_failed, fault) {
            (Some(last_error), _) => last_error.message.clone(),
            (None, Some(fault)) => fault.to_string(),
            (None, None) if input.is_allocated => "the device has to be attested first".to_owned(),
            // The ticket is on its way.
            (None, None) => return None,
        },
    };
    let phase = if input.is_allocated { Phase::Degraded } else { Phase::Failed };
    Some(readiness(phase, not_ready::ATTESTATION_FAILED, message))
}

fn served(input: &StatusInput<'_>) -> Readiness {
    let refused = input.last_error.filter(|it| it.is_refusal && it.step == Step::Allocate);
    if let Some(last_error) = refused.filter(|_| !input.is_matching && !input.observed.is_in_use) {
        return readiness(Phase::Failed, not_ready::ALLOCATION_REFUSED, last_error.message.clone());
    }
    let is_allocating = !input.is_allocated
        || input.has_extras
        || (!input.is_matching && input.waits != Some(Waits::Pods));
    if is_allocating {
        let message = match input.waits {
            Some(Waits::FormerPods) => "waits for Pods that still use the former allocation",
            _ => "being allocated",
        };
        return readiness(Phase::Allocating, not_ready::ALLOCATING, message);
    }
    match input.fault {
        Some((reason, message)) => readiness(Phase::Degraded, reason, message.clone()),
        None => readiness(Phase::Ready, FLOOR_MET, "the floor is met"),
    }
}

/// Ready, Attested and UpdatePending, each with the time of its last transition.
pub(crate) fn conditions(
    input: &StatusInput<'_>,
    readiness: &Readiness,
    now: Timestamp,
) -> Vec<Condition> {
    let ready = readiness.phase == Phase::Ready;
    let (attested, attested_reason, attested_message) = attested(input);
    let (pending, pending_reason, pending_message) = pending(input);
    [
        (condition::READY, ready, readiness.reason, readiness.message.clone()),
        (ATTESTED, attested, attested_reason, attested_message),
        (condition::UPDATE_PENDING, pending, pending_reason, pending_message),
    ]
    .map(|(type_, is_true, reason, message)| {
        let (before, generation) = (&input.observed.conditions, Some(input.observed.generation));
        condition_since(before, generation, type_, is_true, reason, message, now)
    })
    .into()
}

fn attested(input: &StatusInput<'_>) -> (bool, &'static str, String) {
    match input.trust {
        Trust::NotRequired => (false, "NotRequired", "no attestation is required".to_owned()),
        Trust::Good { device, .. } => (true, "TicketVerified", format!("device {device:?}")),
        Trust::Denied { message, .. } => (false, not_ready::ATTESTATION_FAILED, message.clone()),
        Trust::Unknown { message } => (false, "Unknown", message.clone()),
        Trust::Ask { device, fault } => {
            let failed = input.last_error.filter(|it| it.step == Step::Attest);
            match (failed.map(|it| it.message.clone()), fault) {
                (Some(message), _) => (false, not_ready::ATTESTATION_FAILED, message),
                (None, Some(fault)) => (false, not_ready::ATTESTATION_FAILED, fault.to_string()),
                (None, None) => (false, "Attesting", format!("device {device:?}")),
            }
        }
    }
}

fn pending(input: &StatusInput<'_>) -> (bool, &'static str, String) {
    let text = |text: &str| text.to_owned();
    if input.observed.is_deleting || !input.is_allocated {
        return (false, "NothingPending", text("nothing is allocated that could be updated"));
    }
    match (input.waits, input.last_error) {
        (Some(Waits::Pods), _) => {
            (true, "InUse", text("needs another allocation, once no Pod uses this one"))
        }
        (Some(Waits::Trust), _) => {
            (true, not_ready::ATTESTATION_FAILED, text("waits for a good attestation ticket"))
        }
        (_, Some(last_error)) if matches!(last_error.step, Step::Change | Step::Allocate) => {
            let refused = not_ready::ALLOCATION_REFUSED;
            let reason =
                if last_error.is_refusal { refused } else { not_ready::BACKEND_UNREACHABLE };
            (true, reason, last_error.message.clone())
        }
        _ if !input.is_matching => (true, "Reallocating", text("moves to another allocation")),
        _ if input.has_change => (true, "Updating", text("is being changed in place")),
        _ => (false, "UpToDate", text("the allocation is as the spec asks")),
    }
}

/// With the time of its last transition: that of the condition `before`, unless its status was another one.
pub(crate) fn condition_since(
    before: &[Condition],
    generation: Option<i64>,
    type_: &str,
    is_true: bool,
    reason: &str,
    message: String,
    now: Timestamp,
) -> Condition {
    let status = if is_true { "True" } else { "False" };
    let before = condition::find(before, type_).filter(|it| it.status == status);
    // The API server keeps whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: before.map_or(Time(now), |it| it.last_transition_time.clone()),
    }
}

#[cfg(test)]
mod tests;
