use crds::PodUse;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;
use crate::lifecycle::Use;
use crate::lifecycle::testkit::{Held, actual};

fn condition_of(type_: &str, status: &str, reason: &str, generation: i64) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: "no".to_owned(),
        observed_generation: Some(generation),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

fn pending(status: &str, reason: &str) -> Vec<Condition> {
    vec![condition_of(condition::UPDATE_PENDING, status, reason, 2)]
}

/// A Ready object with a handle that one Pod uses.
fn observed() -> Observed {
    let pod = PodUse { namespace: "a".into(), name: "p".into(), uid: "u".into() };
    let ready = [condition_of(condition::READY, "True", "FloorMet", 1)];
    let used = Use { count: Some(1), pods: &[pod] };
    let metadata = ObjectMeta::default();
    Observed::new(&metadata, "finalizer", Some(Phase::Ready), Some("h-1".into()), used, &ready)
}

#[test]
fn an_update_that_is_refused_or_denied_is_reported_once() {
    let emitted = |before: &[Condition], reason: &str| {
        of_update(before, &pending("True", reason)).map(|it| it.reason)
    };
    let idle = pending("False", "UpToDate");
    assert_eq!(emitted(&idle, "AllocationRefused"), Some("UpdateRefused"));
    assert_eq!(emitted(&idle, "AttestationFailed"), Some("UpdateDenied"));
    assert_eq!(emitted(&[], "AttestationFailed"), Some("UpdateDenied"));
    assert_eq!(emitted(&pending("True", "AttestationFailed"), "AttestationFailed"), None);
    assert_eq!(emitted(&idle, "Updating"), None, "it goes well");
    assert_eq!(of_update(&pending("True", "AllocationRefused"), &idle), None, "it is over");
}

#[test]
fn a_release_is_reported_as_forced_only_if_pods_use_what_is_released_by_annotation() {
    let release = Op::<()>::Release("h-1".to_owned());
    let forced = Observed { is_forced: true, ..observed() };
    let emitted = of_operation(&release, &forced).unwrap();
    assert_eq!((emitted.is_warning, emitted.reason), (true, "ForcedRelease"));
    assert_eq!(emitted.message, "released by its annotation, though Pods use it: a/p");
    assert_eq!(of_operation(&release, &observed()), None, "it has been drained");
    let idle = Observed { is_in_use: false, ..forced.clone() };
    assert_eq!(of_operation(&release, &idle), None, "nobody loses anything");
    assert_eq!(of_operation(&Op::<()>::RenewLease("h-1".to_owned()), &forced), None);
}

#[test]
fn an_allocation_is_lost_when_its_daemon_lists_neither_it_nor_one_in_its_place() {
    let emitted = |actual: &Actual<Held>| lost(&observed(), actual, "corrd").map(|it| it.message);
    let words = "corrd has lost h-1; it is allocated anew";
    assert_eq!(emitted(&actual(&[], None)).as_deref(), Some(words));
    assert_eq!(emitted(&actual(&["h-2"], None)).as_deref(), Some(words), "of another wish");
    assert_eq!(emitted(&actual(&["h-1"], None)), None, "it serves until there is another");
    assert_eq!(emitted(&actual(&["h-2"], Some(0))), None, "it has moved");
    assert_eq!(
        emitted(&Actual { allocations: None, ..actual(&[], None) }),
        None,
        "a daemon that is silent has lost nothing"
    );
    let none = actual(&[], None);
    let deleting = Observed { is_deleting: true, ..observed() };
    assert_eq!(lost(&deleting, &none, "corrd"), None, "it is being released");
    let new = Observed { handle: None, ..observed() };
    assert_eq!(lost(&new, &none, "corrd"), None, "it never had one, or was reported");
}

#[test]
fn another_floor_is_reported_as_a_windows_only_if_neither_spec_nor_allocation_changed() {
    let emitted = |after: &Observed, from: Option<f64>, to: Option<f64>| {
        of_window(&observed(), after, from, to).map(|it| (it.is_warning, it.reason, it.message))
    };
    let words = "the floor is 12 instead of 8 now, as its schedule asks".to_owned();
    let same = observed();
    assert_eq!(emitted(&same, Some(8.0), Some(12.0)), Some((false, "FloorChanged", words)));
    assert_eq!(emitted(&same, Some(8.0), Some(8.0)), None);
    assert_eq!(emitted(&same, None, Some(8.0)), None, "the first one");
    let changed = Observed {
        conditions: vec![condition_of(condition::READY, "True", "FloorMet", 2)],
        ..observed()
    };
    assert_eq!(emitted(&changed, Some(8.0), Some(12.0)), None, "its owner asked for it");
    let moved = Observed { handle: Some("h-2".into()), ..observed() };
    assert_eq!(emitted(&moved, Some(8.0), Some(12.0)), None);
}

#[test]
fn a_phase_or_reason_is_reported_when_it_changes_and_as_a_warning_when_it_is_bad() {
    let readiness = |phase, reason| Readiness { phase, reason, message: "why".to_owned() };
    assert!(!is_transition(&observed(), &readiness(Phase::Ready, "FloorMet")));
    let fallen = readiness(Phase::Degraded, not_ready::BELOW_FLOOR);
    assert!(is_transition(&observed(), &fallen));
    let emitted = of_readiness(&fallen);
    assert_eq!((emitted.is_warning, emitted.reason), (true, "BelowFloor"));
    assert_eq!(emitted.message, "Degraded: why");
    let ready = of_readiness(&readiness(Phase::Ready, "FloorMet"));
    assert_eq!((ready.is_warning, ready.reason), (false, "Ready"));
    let other_reason = readiness(Phase::Ready, "Other");
    assert!(is_transition(&observed(), &other_reason), "the same phase for another reason");
}
