//! Pure: the status of a policy after an audit.

use crds::condition::{self, not_ready};
use crds::{AttestationPolicy, AttestationPolicyStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observe::Audited;
use crate::lifecycle::condition_since;

/// A message names at most this many objects.
const NAMED_MAX: usize = 8;

pub(super) fn status(
    policy: &AttestationPolicy,
    audited: &Audited,
    now: Timestamp,
) -> AttestationPolicyStatus {
    // The API server keeps whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let Audited { has_attestd, attested, unattested } = audited;
    let (is_ready, reason, message) = if !has_attestd {
        (false, not_ready::BACKEND_NOT_CONFIGURED, "attestd is not configured".to_owned())
    } else if unattested.is_empty() {
        (true, "Enforced", format!("{attested} objects hold a good ticket"))
    } else {
        let named: Vec<&str> = unattested.iter().take(NAMED_MAX).map(String::as_str).collect();
        let (count, list) = (unattested.len(), named.join(", "));
        let message = format!("{count} objects hold no good ticket and are not Ready: {list}");
        (true, "Enforced", message)
    };
    let old = policy.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    let generation = policy.metadata.generation;
    let ready = condition_since(old, generation, condition::READY, is_ready, reason, message, now);
    AttestationPolicyStatus {
        // Without attestd nothing is allocated that the policy constrains. That is enforcement too, but nothing is
        // attested, and the status must not suggest otherwise.
        enforced: Some(*has_attestd),
        last_audit_time: Some(Time(now)),
        observed_generation: generation,
        conditions: vec![ready],
    }
}
