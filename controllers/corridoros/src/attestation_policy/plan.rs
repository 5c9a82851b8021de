//! Pure: whether an audit is due.

use std::time::Duration;

use crds::AttestationPolicy;
use jiff::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Audit,
    Nothing,
}

/// The status keeps whole seconds, so a reconcile that is a little early still counts as due.
const EARLY_MAX: Duration = Duration::from_secs(1);

pub(super) fn plan(policy: &AttestationPolicy, interval: Duration, now: Timestamp) -> Op {
    if policy.metadata.deletion_timestamp.is_some() {
        return Op::Nothing;
    }
    let Some(status) = &policy.status else { return Op::Audit };
    let is_current = status.observed_generation == policy.metadata.generation;
    let age = status.last_audit_time.as_ref().map(|it| now.duration_since(it.0));
    let is_recent =
        age.is_some_and(|age| Duration::try_from(age).unwrap_or_default() + EARLY_MAX < interval);
    if is_current && is_recent { Op::Nothing } else { Op::Audit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::{AttestationPolicySpec, AttestationPolicyStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn an_audit_is_due_for_a_new_policy_a_new_spec_and_after_the_interval() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let minute = Duration::from_mins(1);
        let mut policy = AttestationPolicy::new("p", AttestationPolicySpec::default());
        policy.metadata.generation = Some(1);
        assert_eq!(plan(&policy, minute, at(1000)), Op::Audit);
        policy.status = Some(AttestationPolicyStatus {
            last_audit_time: Some(Time(at(1000))),
            observed_generation: Some(1),
            ..AttestationPolicyStatus::default()
        });
        assert_eq!(plan(&policy, minute, at(1030)), Op::Nothing);
        assert_eq!(plan(&policy, minute, at(1060)), Op::Audit);
        policy.metadata.generation = Some(2);
        assert_eq!(plan(&policy, minute, at(1030)), Op::Audit);
    }
}
