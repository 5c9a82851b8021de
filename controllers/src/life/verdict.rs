//! Pure: phase, reason and conditions of an object, from what one pass has found.

use std::time::Duration;

use crds::condition::{self, not_ready};
use crds::{Phase, annotations, condition::ATTESTED};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::facts::Facts;
use super::plan::{Step, Waits};
use crate::attestation::Trust;
use crate::telemetry_cache::Flow;

/// What failed in this pass or an earlier one, and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub step: Step,
    /// The daemon was there and said no.
    pub is_refusal: bool,
    pub message: String,
}

/// Everything that decides what to say.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, and they are independent")]
pub(crate) struct View<'a> {
    pub facts: &'a Facts,
    pub backend: &'static str,
    pub has_backend: bool,
    pub flow: Flow,
    pub unreachable_after: Duration,
    pub invalid: Option<&'a str>,
    pub trust: &'a Trust,
    /// attestd is not configured.
    pub has_attestd: bool,
    pub is_allocated: bool,
    /// The allocation answers the whole wish but in-place changes.
    pub is_matching: bool,
    pub has_extras: bool,
    pub has_change: bool,
    pub waits: Option<Waits>,
    pub fault: Option<&'a (&'static str, String)>,
    pub trouble: Option<&'a Trouble>,
}

impl View<'_> {
    /// Whether nothing has been heard for longer than counts as fresh.
    pub fn is_silent(&self) -> bool {
        matches!(&self.flow, Flow::Silent(silent, _) if *silent >= self.unreachable_after)
    }
}

/// Why an object is Ready or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub phase: Phase,
    pub reason: &'static str,
    pub message: String,
}

/// Reason of `Ready=True`.
pub(crate) const FLOOR_MET: &str = "FloorMet";

fn verdict(phase: Phase, reason: &'static str, message: impl Into<String>) -> Verdict {
    Verdict { phase, reason, message: message.into() }
}

/// The first thing that stands in the way, in the order in which a person would remove it.
pub(crate) fn decide(view: &View<'_>) -> Verdict {
    let away = format!("{} is not configured", view.backend);
    if view.facts.is_deleting {
        return if view.has_backend {
            verdict(Phase::Releasing, not_ready::RELEASING, releasing(view))
        } else {
            verdict(Phase::Releasing, not_ready::BACKEND_NOT_CONFIGURED, away)
        };
    }
    if !view.has_backend {
        return verdict(Phase::Pending, not_ready::BACKEND_NOT_CONFIGURED, away);
    }
    if let Some(why) = view.invalid {
        return verdict(Phase::Failed, not_ready::ALLOCATION_REFUSED, why);
    }
    unreachable(view).or_else(|| untrusted(view)).unwrap_or_else(|| served(view))
}

fn releasing(view: &View<'_>) -> String {
    match (view.waits, view.trouble) {
        (_, Some(trouble)) => trouble.message.clone(),
        (Some(Waits::Drain), None) if view.facts.users.is_empty() => {
            "waits until the scheduler says that no Pod uses it".to_owned()
        }
        (Some(Waits::Drain), None) => format!(
            "waits until no Pod uses it: {}; end them, or set the annotation {}=\"true\" to release it all the same",
            view.facts.users,
            annotations::FORCE_RELEASE,
        ),
        _ => format!("being released at {}", view.backend),
    }
}

fn unreachable(view: &View<'_>) -> Option<Verdict> {
    let silence = match &view.flow {
        Flow::Silent(_, why) if view.is_silent() => Some(why.as_str()),
        _ => None,
    };
    let failed = view.trouble.filter(|it| !it.is_refusal && it.step != Step::Attest);
    // One failed call says little while telemetry flows and the path is there.
    let failed = failed.filter(|_| !view.is_allocated).map(|it| it.message.as_str());
    let why = silence.or(failed)?;
    let has_handle = view.is_allocated || view.facts.handle.is_some();
    let phase = if has_handle { Phase::Degraded } else { Phase::Pending };
    Some(verdict(phase, not_ready::BACKEND_UNREACHABLE, why))
}

fn untrusted(view: &View<'_>) -> Option<Verdict> {
    let attest_failed = view.trouble.filter(|it| it.step == Step::Attest);
    let message = match view.trust {
        Trust::NotRequired | Trust::Good { .. } => return None,
        Trust::Unknown { message } if !view.has_attestd => {
            let phase = if view.is_allocated { Phase::Degraded } else { Phase::Pending };
            return Some(verdict(phase, not_ready::BACKEND_NOT_CONFIGURED, message.clone()));
        }
        Trust::Denied { message, .. } | Trust::Unknown { message } => message.clone(),
        Trust::Ask { fault, .. } => match (attest_failed, fault) {
            (Some(trouble), _) => trouble.message.clone(),
            (None, Some(fault)) => fault.to_string(),
            (None, None) if view.is_allocated => "the device has to be attested first".to_owned(),
            // On its way: nothing has failed.
            (None, None) => return None,
        },
    };
    let phase = if view.is_allocated { Phase::Degraded } else { Phase::Failed };
    Some(verdict(phase, not_ready::ATTESTATION_FAILED, message))
}

fn served(view: &View<'_>) -> Verdict {
    let refused = view.trouble.filter(|it| it.is_refusal && it.step == Step::Allocate);
    if let Some(trouble) = refused.filter(|_| !view.is_matching && !view.facts.is_in_use) {
        return verdict(Phase::Failed, not_ready::ALLOCATION_REFUSED, trouble.message.clone());
    }
    let is_on_the_way = !view.is_allocated
        || view.has_extras
        || (!view.is_matching && view.waits != Some(Waits::Pods));
    if is_on_the_way {
        let message = match view.waits {
            Some(Waits::FormerPods) => "waits for Pods that still use the former allocation",
            _ => "being allocated",
        };
        return verdict(Phase::Allocating, not_ready::ALLOCATING, message);
    }
    match view.fault {
        Some((reason, message)) => verdict(Phase::Degraded, reason, message.clone()),
        None => verdict(Phase::Ready, FLOOR_MET, "the floor is met"),
    }
}

/// Ready, Attested and UpdatePending, each with the time of its last transition.
pub(crate) fn conditions(view: &View<'_>, verdict: &Verdict, now: Timestamp) -> Vec<Condition> {
    let ready = verdict.phase == Phase::Ready;
    let (attested, attested_reason, attested_message) = attested(view);
    let (pending, pending_reason, pending_message) = pending(view);
    [
        (condition::READY, ready, verdict.reason, verdict.message.clone()),
        (ATTESTED, attested, attested_reason, attested_message),
        (condition::UPDATE_PENDING, pending, pending_reason, pending_message),
    ]
    .map(|(type_, is_true, reason, message)| {
        condition_since(view.facts, type_, is_true, reason, message, now)
    })
    .into()
}

fn attested(view: &View<'_>) -> (bool, &'static str, String) {
    match view.trust {
        Trust::NotRequired => (false, "NotRequired", "no attestation is required".to_owned()),
        Trust::Good { device, .. } => (true, "TicketVerified", format!("device {device:?}")),
        Trust::Denied { message, .. } => (false, not_ready::ATTESTATION_FAILED, message.clone()),
        Trust::Unknown { message } => (false, "Unknown", message.clone()),
        Trust::Ask { device, fault } => {
            let failed = view.trouble.filter(|it| it.step == Step::Attest);
            match (failed.map(|it| it.message.clone()), fault) {
                (Some(message), _) => (false, not_ready::ATTESTATION_FAILED, message),
                (None, Some(fault)) => (false, not_ready::ATTESTATION_FAILED, fault.to_string()),
                (None, None) => (false, "Attesting", format!("device {device:?}")),
            }
        }
    }
}

fn pending(view: &View<'_>) -> (bool, &'static str, String) {
    let text = |text: &str| text.to_owned();
    if view.facts.is_deleting || !view.is_allocated {
        return (false, "NothingPending", text("nothing is allocated that could be updated"));
    }
    match (view.waits, view.trouble) {
        (Some(Waits::Pods), _) => {
            (true, "InUse", text("needs another allocation, once no Pod uses this one"))
        }
        (Some(Waits::Trust), _) => {
            (true, not_ready::ATTESTATION_FAILED, text("waits for a good attestation ticket"))
        }
        (_, Some(trouble)) if matches!(trouble.step, Step::Change | Step::Allocate) => {
            let refused = not_ready::ALLOCATION_REFUSED;
            let reason = if trouble.is_refusal { refused } else { not_ready::BACKEND_UNREACHABLE };
            (true, reason, trouble.message.clone())
        }
        _ if !view.is_matching => (true, "Reallocating", text("moves to another allocation")),
        _ if view.has_change => (true, "Updating", text("is being changed in place")),
        _ => (false, "UpToDate", text("the allocation is as the spec asks")),
    }
}

fn condition_since(
    facts: &Facts,
    type_: &str,
    is_true: bool,
    reason: &str,
    message: String,
    now: Timestamp,
) -> Condition {
    let status = if is_true { "True" } else { "False" };
    let before = condition::find(&facts.conditions, type_).filter(|it| it.status == status);
    // The API server keeps whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(facts.generation),
        last_transition_time: before.map_or(Time(now), |it| it.last_transition_time.clone()),
    }
}

/// What our conditions say, compared with what stands there.
pub(crate) fn conditions_drift(old: &[Condition], new: &[Condition]) -> super::kind::Drift {
    use super::kind::Drift;
    let of_one = |next: &Condition| match condition::find(old, &next.type_) {
        None => Drift::Turning,
        Some(it)
            if (&it.status, &it.reason, it.observed_generation)
                != (&next.status, &next.reason, next.observed_generation) =>
        {
            Drift::Turning
        }
        Some(it) if it.message != next.message => Drift::Reading,
        Some(_) => Drift::None,
    };
    new.iter().map(of_one).max().unwrap_or(Drift::None)
}

#[cfg(test)]
mod tests;
