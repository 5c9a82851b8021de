//! What a Lease says, and what is written into it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::settings::ElectionSettings;

pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let spec = lease.spec.as_ref()?;
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

pub(super) fn transitions(lease: &Lease) -> i32 {
    lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0)
}

/// How long its holder asked others to wait; `otherwise` if it did not say.
pub(super) fn duration(lease: &Lease, otherwise: Duration) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(otherwise, Duration::from_secs)
}

/// Whether it was written between the two sights. Any write counts as a sign of life: two renewals may
/// bear the same time, and waiting too long is the lesser evil.
pub(super) fn is_written(before: &Lease, after: &Lease) -> bool {
    let version = |lease: &Lease| lease.metadata.resource_version.clone();
    before.metadata.uid != after.metadata.uid || version(before) != version(after)
}

/// The Lease as its new holder writes it. What others keep on it stays.
pub(super) fn taken(
    before: Option<&Lease>,
    settings: &ElectionSettings,
    identity: &str,
    now: Timestamp,
) -> Lease {
    let mut lease = before.cloned().unwrap_or_default();
    lease.metadata.name = Some(settings.name.clone());
    lease.metadata.namespace = Some(settings.namespace.clone());
    let transitions = before.map_or(0, |before| transitions(before).saturating_add(1));
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_transitions = Some(transitions);
    spec.lease_duration_seconds = i32::try_from(settings.lease_duration.as_secs()).ok();
    spec.acquire_time = Some(MicroTime(now));
    spec.renew_time = Some(MicroTime(now));
    lease
}

pub(super) fn renewed(held: &Lease, now: Timestamp) -> Lease {
    let mut lease = held.clone();
    lease.spec.get_or_insert_default().renew_time = Some(MicroTime(now));
    lease
}

/// Without a holder, so that another replica may take it at once.
pub(super) fn released(held: &Lease, now: Timestamp) -> Lease {
    let mut lease = renewed(held, now);
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    lease
}
