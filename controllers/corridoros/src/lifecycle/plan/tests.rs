use super::*;
use crate::lifecycle::testkit::{self, Held, actual, at, held};
use crds::Phase;

fn intent() -> Intent {
    Intent { key: "u:1".into(), device_id: None }
}

/// A finalized object with its intent written and nothing else.
fn observed() -> Observed {
    Observed { intent: Some(intent()), ..testkit::observed() }
}

fn desired() -> Desired<u8> {
    Desired { invalid: None, intent: intent(), change: None, remedy: None }
}

fn op(observed: &Observed, actual: &Actual<Held>, desired: &Desired<u8>) -> Option<Op<u8>> {
    plan(observed, actual, desired, at(0)).op
}

fn good(renew_at: i64) -> Trust {
    Trust::Good { device: "d".into(), expires_at: at(900), renew_at: at(renew_at) }
}

#[test]
fn the_daemon_hears_nothing_before_finalizer_and_intent_are_written() {
    let fresh = Observed { has_finalizer: false, intent: None, ..observed() };
    assert_eq!(op(&fresh, &actual(&[], None), &desired()), Some(Op::Prepare(intent())));
    let other = Intent { key: "u:0".into(), device_id: None };
    let outdated = Observed { intent: Some(other), ..observed() };
    assert_eq!(op(&outdated, &actual(&[], None), &desired()), Some(Op::Prepare(intent())));
    assert_eq!(op(&observed(), &actual(&[], None), &desired()), Some(Op::Allocate));
    let silent = Actual { allocations: None, ..actual(&[], None) };
    assert_eq!(op(&observed(), &silent, &desired()), None, "an unknown list allows no POST");
}

#[test]
fn a_match_is_adopted_and_extras_go_once_the_status_names_it() {
    let all = actual(&["old", "new"], Some(1));
    assert_eq!(op(&observed(), &all, &desired()), None, "the status is first");
    let named = Observed { handle: Some("new".into()), ..observed() };
    assert_eq!(op(&named, &all, &desired()), Some(Op::ReleaseExtra("old".into())));
    let used = Observed { is_in_use: true, ..named };
    assert_eq!(plan(&used, &all, &desired(), at(0)).waits, Some(Waits::FormerPods));
}

#[test]
fn without_trust_nothing_is_allocated_or_changed_but_leases_and_releases_go_on() {
    let bad = [
        Trust::Denied { failures: Vec::new(), by_policy: true, message: String::new() },
        Trust::Unknown { message: String::new() },
        Trust::Ask { device: "d".into(), fault: None },
    ];
    for trust in bad {
        let untrusted = |allocations: &[&'static str], matching| Actual {
            trust: trust.clone(),
            ..actual(allocations, matching)
        };
        let asked = op(&observed(), &untrusted(&[], None), &desired());
        assert!(matches!(asked, None | Some(Op::Attest { .. })), "{asked:?}");
        let change = Desired { change: Some(1), remedy: Some(2), ..desired() };
        let asked = op(&observed(), &untrusted(&["a"], Some(0)), &change);
        assert!(matches!(asked, None | Some(Op::Attest { .. })), "{asked:?}");
        let late = plan(&observed(), &untrusted(&["a"], Some(0)), &desired(), at(9_900));
        assert_eq!(late.op, Some(Op::RenewLease("a".into())));
        let leaving = Observed { is_deleting: true, is_drained: true, ..observed() };
        let asked = op(&leaving, &untrusted(&["a"], Some(0)), &desired());
        assert_eq!(asked, Some(Op::Release("a".into())));
    }
}

#[test]
fn a_ticket_is_renewed_before_it_expires() {
    let attested = |renew_at| Actual { trust: good(renew_at), ..actual(&["a"], Some(0)) };
    assert_eq!(op(&observed(), &attested(600), &desired()), None);
    assert_eq!(op(&observed(), &attested(0), &desired()), Some(Op::Attest { device: "d".into() }));
}

#[test]
fn another_allocation_waits_for_pods_and_for_its_announcement() {
    let served = Observed { handle: Some("old".into()), phase: Some(Phase::Ready), ..observed() };
    let stands = actual(&["old"], None);
    assert_eq!(plan(&served, &stands, &desired(), at(0)).waits, Some(Waits::Announcement));
    let announced = Observed { phase: Some(Phase::Allocating), ..served.clone() };
    assert_eq!(op(&announced, &stands, &desired()), Some(Op::Allocate));
    let used = Observed { is_in_use: true, ..served };
    let stale = Actual { trust: good(0), ..stands.clone() };
    assert_eq!(op(&used, &stale, &desired()), Some(Op::Attest { device: "d".into() }));
    let change = Desired { change: Some(7), ..desired() };
    let planned = plan(&used, &stands, &change, at(0));
    assert_eq!(planned.waits, Some(Waits::Pods));
    assert_eq!(planned.op, Some(Op::Change("old".into(), 7)), "in-place parts need not wait");
}

#[test]
fn an_end_waits_for_the_scheduler_and_the_finalizer_for_the_daemon() {
    let leaving = Observed { is_deleting: true, handle: Some("a".into()), ..observed() };
    let one = actual(&["a"], Some(0));
    assert_eq!(plan(&leaving, &one, &desired(), at(0)).waits, Some(Waits::Drain));
    let late = plan(&leaving, &one, &desired(), at(9_900));
    assert_eq!(late.op, Some(Op::RenewLease("a".into())), "Pods still use it");
    let gone = actual(&[], None);
    assert_eq!(plan(&leaving, &gone, &desired(), at(0)).waits, Some(Waits::Drain));
    for free in [
        Observed { is_drained: true, ..leaving.clone() },
        Observed { is_forced: true, ..leaving.clone() },
    ] {
        assert_eq!(op(&free, &one, &desired()), Some(Op::Release("a".into())));
        assert_eq!(op(&free, &gone, &desired()), Some(Op::DropFinalizer));
        let silent = Actual { allocations: None, ..gone.clone() };
        assert_eq!(op(&free, &silent, &desired()), None, "a finalizer does not fall on silence");
    }
    let never_served = Observed { handle: None, ..leaving.clone() };
    assert_eq!(op(&never_served, &gone, &desired()), Some(Op::DropFinalizer));
    let not_ours = Observed { has_finalizer: false, is_drained: true, ..leaving };
    assert_eq!(op(&not_ours, &one, &desired()), None, "after the finalizer nothing is touched");
}

#[test]
fn a_wrong_spec_asks_for_nothing_and_keeps_what_is_held() {
    let wrong = Desired { invalid: Some("why".into()), ..desired() };
    assert_eq!(op(&observed(), &actual(&[], None), &wrong), None);
    let late = plan(&observed(), &actual(&["a"], Some(0)), &wrong, at(9_900));
    assert_eq!(late.op, Some(Op::RenewLease("a".into())));
    assert_eq!(
        op(&observed(), &Actual { has_backend: false, ..actual(&[], None) }, &desired()),
        None
    );
}

#[test]
fn leases_are_renewed_at_a_third() {
    assert_eq!(renewal(&held("a")), at(10_000 - 200));
}
