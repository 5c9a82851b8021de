//! What a verdict means to those who count: whether a floor is owed, and whose matter it is if not.

use crds::Phase;
use crds::condition::not_ready;
use jiff::Timestamp;

use super::facts::Facts;
use super::kind::Kind;
use super::observe::Found;
use super::verdict::Verdict;
use crate::attestation::{Failure, Trust};
use crate::context::Context;
use crate::metrics::Standing;

/// Tells the metrics, and the driver, which counts how long objects take to become Ready.
pub(super) fn record<K: Kind>(
    context: &Context,
    object: &K::Object,
    found: &Found<K>,
    verdict: &Verdict,
    now: Timestamp,
) {
    let (facts, seen) = (&found.facts, &found.seen);
    // Without a daemon somebody else may play it, and measures what he likes.
    if !seen.has_backend {
        return;
    }
    let is_refused = is_refused(found.wish.invalid.is_some(), &seen.trust, verdict);
    if is_refused {
        context.own_writes.record_refusal(&facts.uid);
    }
    let standing = Standing {
        is_refused,
        has_nothing: seen.allocations.is_some() && seen.current(facts).is_none(),
        is_deleting: facts.is_deleting,
    };
    K::record_standing(context, object, standing, now);
}

/// By its own spec, or by the policies of its namespace: no daemon and no device is to blame. One that has been
/// allocated was admitted by a device that may have changed since, which is the site's matter.
fn is_refused(is_invalid: bool, trust: &Trust, verdict: &Verdict) -> bool {
    match verdict.reason {
        not_ready::ALLOCATION_REFUSED => is_invalid,
        not_ready::ATTESTATION_FAILED => {
            let is_denied = matches!(trust, Trust::Denied { by_policy: true, .. });
            is_denied && verdict.phase == Phase::Failed
        }
        _ => false,
    }
}

/// Each device that will not do counts once, when this process first finds that: attestd is not even asked.
pub(super) fn count_failures(
    context: &Context,
    facts: &Facts,
    trust: &Trust,
    counted: &mut Vec<Failure>,
) {
    let failures = trust.failures();
    for failure in failures.iter().filter(|it| !counted.contains(it)) {
        let Failure { device, reason } = failure;
        context.metrics.attestation_failed(&facts.namespace, device, reason);
    }
    *counted = failures;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(reason: &'static str) -> Verdict {
        Verdict { phase: Phase::Failed, reason, message: String::new() }
    }

    #[test]
    fn what_a_tenant_refuses_is_told_from_what_the_site_lacks() {
        let denied =
            |by_policy| Trust::Denied { failures: Vec::new(), by_policy, message: String::new() };
        let attestation = failed(not_ready::ATTESTATION_FAILED);
        assert!(is_refused(false, &denied(true), &attestation), "its own policy");
        assert!(!is_refused(false, &denied(false), &attestation), "the site has no device");
        let allocated = Verdict { phase: Phase::Degraded, ..attestation.clone() };
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
