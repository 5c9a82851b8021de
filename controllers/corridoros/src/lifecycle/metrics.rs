//! What the readiness of an object means for metrics: whether a floor is owed, and whether its owner or the site has to
//! act if it is not met.

use crds::Phase;
use crds::condition::not_ready;
use jiff::Timestamp;

use super::allocated_kind::AllocatedKind;
use super::observe::Snapshot;
use super::readiness::Readiness;
use crate::attestation::{DeviceFailure, Trust};
use crate::context::Context;
use crate::metrics::ObjectState;

/// For the metrics, and for the driver, which measures how long objects take to become Ready.
pub(super) fn record<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    snapshot: &Snapshot<K>,
    readiness: &Readiness,
    now: Timestamp,
) {
    let (observed, actual) = (&snapshot.observed, &snapshot.actual);
    // Without a configured daemon another program may maintain the object and its metrics.
    if !actual.has_backend {
        return;
    }
    let is_refused = is_refused(snapshot.desired.invalid.is_some(), &actual.trust, readiness);
    if is_refused {
        context.own_writes.record_refusal(&observed.uid);
    }
    let state = ObjectState {
        is_refused,
        has_nothing: actual.allocations.is_some() && snapshot.current().is_none(),
        is_deleting: observed.is_deleting,
    };
    K::record_state(&context.metrics, object, state, now);
}

/// Refused by its own spec or by the policies of its namespace, not by a daemon or a device. An object that has been
/// allocated was admitted by a device that may have changed since, so the site has to act.
fn is_refused(is_invalid: bool, trust: &Trust, readiness: &Readiness) -> bool {
    match readiness.reason {
        not_ready::ALLOCATION_REFUSED => is_invalid,
        not_ready::ATTESTATION_FAILED => {
            let is_denied = matches!(trust, Trust::Denied { by_policy: true, .. });
            is_denied && readiness.phase == Phase::Failed
        }
        _ => false,
    }
}

/// Each device that does not qualify counts once, when this process first finds that: attestd is not even asked.
pub(super) fn count_failures<K: AllocatedKind>(
    context: &Context,
    snapshot: &Snapshot<K>,
    counted: &mut Vec<DeviceFailure>,
) {
    let failures = snapshot.actual.trust.failures();
    for failure in failures.iter().filter(|it| !counted.contains(it)) {
        let DeviceFailure { device, reason } = failure;
        context.metrics.attestation_failed(&snapshot.observed.namespace, device, reason);
    }
    *counted = failures;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(reason: &'static str) -> Readiness {
        Readiness { phase: Phase::Failed, reason, message: String::new() }
    }

    #[test]
    fn a_refusal_by_the_tenant_differs_from_what_the_site_lacks() {
        let denied =
            |by_policy| Trust::Denied { failures: Vec::new(), by_policy, message: String::new() };
        let attestation = failed(not_ready::ATTESTATION_FAILED);
        assert!(is_refused(false, &denied(true), &attestation), "its own policy");
        assert!(!is_refused(false, &denied(false), &attestation), "the site has no device");
        let allocated = Readiness { phase: Phase::Degraded, ..attestation.clone() };
        assert!(!is_refused(false, &denied(true), &allocated), "the device may have changed");
        let ask = Trust::Ask { device: "d".into(), fault: None };
        assert!(!is_refused(false, &ask, &attestation), "attestd said no, or nothing");
        let refused = failed(not_ready::ALLOCATION_REFUSED);
        assert!(is_refused(true, &Trust::NotRequired, &refused), "its own spec");
        assert!(!is_refused(false, &Trust::NotRequired, &refused), "the daemon");
        let silent = failed(not_ready::BACKEND_UNREACHABLE);
        assert!(!is_refused(false, &denied(true), &silent));
    }
}
