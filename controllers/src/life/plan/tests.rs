use super::*;
use crds::Phase;
use daemons::Owner;
use daemons::corrd::Lease;

#[derive(Clone, Debug)]
struct Held {
    id: &'static str,
    owner: Owner,
    expires_at: Timestamp,
}

impl Allocation for Held {
    fn id(&self) -> &str {
        self.id
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn device(&self) -> Option<&str> {
        None
    }

    fn lease(&self) -> (u64, Timestamp) {
        (300, self.expires_at)
    }

    fn set_lease(&mut self, lease: Lease) {
        self.expires_at = lease.lease_expires_at;
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn held(id: &'static str) -> Held {
    Held { id, owner: Owner::new("c", "u").unwrap(), expires_at: at(10_000) }
}

fn intent() -> Intent {
    Intent { key: "u:1".into(), device_id: None }
}

/// A finalized object with its intent written and nothing else.
fn facts() -> Facts {
    Facts {
        uid: "u".into(),
        namespace: "n".into(),
        name: "o".into(),
        generation: 1,
        is_deleting: false,
        has_finalizer: true,
        intent: Some(intent()),
        ticket: None,
        is_in_use: false,
        users: crate::life::facts::Users::default(),
        is_drained: false,
        is_forced: false,
        handle: None,
        phase: None,
        conditions: Vec::new(),
    }
}

fn seen(allocations: &[&'static str], matching: Option<usize>) -> Seen<Held> {
    Seen {
        has_backend: true,
        allocations: Some(allocations.iter().map(|id| held(id)).collect()),
        matching,
        trust: Trust::NotRequired,
    }
}

fn wish() -> Wish<u8> {
    Wish { invalid: None, intent: intent(), change: None, remedy: None }
}

fn op(facts: &Facts, seen: &Seen<Held>, wish: &Wish<u8>) -> Option<Op<u8>> {
    plan(facts, seen, wish, at(0)).op
}

fn good(renew_at: i64) -> Trust {
    Trust::Good { device: "d".into(), expires_at: at(900), renew_at: at(renew_at) }
}

#[test]
fn the_daemon_hears_nothing_before_finalizer_and_intent_are_written() {
    let fresh = Facts { has_finalizer: false, intent: None, ..facts() };
    assert_eq!(op(&fresh, &seen(&[], None), &wish()), Some(Op::Prepare(intent())));
    let other = Intent { key: "u:0".into(), device_id: None };
    let outdated = Facts { intent: Some(other), ..facts() };
    assert_eq!(op(&outdated, &seen(&[], None), &wish()), Some(Op::Prepare(intent())));
    assert_eq!(op(&facts(), &seen(&[], None), &wish()), Some(Op::Allocate));
    let silent = Seen { allocations: None, ..seen(&[], None) };
    assert_eq!(op(&facts(), &silent, &wish()), None, "an unknown list allows no POST");
}

#[test]
fn a_match_is_adopted_and_extras_go_once_the_status_names_it() {
    let all = seen(&["old", "new"], Some(1));
    assert_eq!(op(&facts(), &all, &wish()), None, "the status is first");
    let named = Facts { handle: Some("new".into()), ..facts() };
    assert_eq!(op(&named, &all, &wish()), Some(Op::ReleaseExtra("old".into())));
    let used = Facts { is_in_use: true, ..named };
    assert_eq!(plan(&used, &all, &wish(), at(0)).waits, Some(Waits::FormerPods));
}

#[test]
fn without_trust_nothing_is_allocated_or_changed_but_leases_and_releases_go_on() {
    let bad = [
        Trust::Denied { failures: Vec::new(), by_policy: true, message: String::new() },
        Trust::Unknown { message: String::new() },
        Trust::Ask { device: "d".into(), fault: None },
    ];
    for trust in bad {
        let untrusted = |allocations: &[&'static str], matching| Seen {
            trust: trust.clone(),
            ..seen(allocations, matching)
        };
        let asked = op(&facts(), &untrusted(&[], None), &wish());
        assert!(matches!(asked, None | Some(Op::Attest { .. })), "{asked:?}");
        let change = Wish { change: Some(1), remedy: Some(2), ..wish() };
        let asked = op(&facts(), &untrusted(&["a"], Some(0)), &change);
        assert!(matches!(asked, None | Some(Op::Attest { .. })), "{asked:?}");
        let late = plan(&facts(), &untrusted(&["a"], Some(0)), &wish(), at(9_900));
        assert_eq!(late.op, Some(Op::RenewLease("a".into())));
        let leaving = Facts { is_deleting: true, is_drained: true, ..facts() };
        let asked = op(&leaving, &untrusted(&["a"], Some(0)), &wish());
        assert_eq!(asked, Some(Op::Release("a".into())));
    }
}

#[test]
fn a_ticket_is_renewed_before_it_expires() {
    let attested = |renew_at| Seen { trust: good(renew_at), ..seen(&["a"], Some(0)) };
    assert_eq!(op(&facts(), &attested(600), &wish()), None);
    assert_eq!(op(&facts(), &attested(0), &wish()), Some(Op::Attest { device: "d".into() }));
}

#[test]
fn another_allocation_waits_for_pods_and_for_its_announcement() {
    let served = Facts { handle: Some("old".into()), phase: Some(Phase::Ready), ..facts() };
    let stands = seen(&["old"], None);
    assert_eq!(plan(&served, &stands, &wish(), at(0)).waits, Some(Waits::Announcement));
    let announced = Facts { phase: Some(Phase::Allocating), ..served.clone() };
    assert_eq!(op(&announced, &stands, &wish()), Some(Op::Allocate));
    let used = Facts { is_in_use: true, ..served };
    let stale = Seen { trust: good(0), ..stands.clone() };
    assert_eq!(op(&used, &stale, &wish()), Some(Op::Attest { device: "d".into() }));
    let change = Wish { change: Some(7), ..wish() };
    let planned = plan(&used, &stands, &change, at(0));
    assert_eq!(planned.waits, Some(Waits::Pods));
    assert_eq!(planned.op, Some(Op::Change("old".into(), 7)), "in-place parts need not wait");
}

#[test]
fn an_end_waits_for_the_scheduler_and_the_finalizer_for_the_daemon() {
    let leaving = Facts { is_deleting: true, handle: Some("a".into()), ..facts() };
    let one = seen(&["a"], Some(0));
    assert_eq!(plan(&leaving, &one, &wish(), at(0)).waits, Some(Waits::Drain));
    let late = plan(&leaving, &one, &wish(), at(9_900));
    assert_eq!(late.op, Some(Op::RenewLease("a".into())), "Pods still use it");
    let gone = seen(&[], None);
    assert_eq!(plan(&leaving, &gone, &wish(), at(0)).waits, Some(Waits::Drain));
    for free in [
        Facts { is_drained: true, ..leaving.clone() },
        Facts { is_forced: true, ..leaving.clone() },
    ] {
        assert_eq!(op(&free, &one, &wish()), Some(Op::Release("a".into())));
        assert_eq!(op(&free, &gone, &wish()), Some(Op::DropFinalizer));
        let silent = Seen { allocations: None, ..gone.clone() };
        assert_eq!(op(&free, &silent, &wish()), None, "a finalizer does not fall on silence");
    }
    let never_served = Facts { handle: None, ..leaving.clone() };
    assert_eq!(op(&never_served, &gone, &wish()), Some(Op::DropFinalizer));
    let not_ours = Facts { has_finalizer: false, is_drained: true, ..leaving };
    assert_eq!(op(&not_ours, &one, &wish()), None, "after the finalizer nothing is touched");
}

#[test]
fn a_wrong_spec_asks_for_nothing_and_keeps_what_is_held() {
    let wrong = Wish { invalid: Some("why".into()), ..wish() };
    assert_eq!(op(&facts(), &seen(&[], None), &wrong), None);
    let late = plan(&facts(), &seen(&["a"], Some(0)), &wrong, at(9_900));
    assert_eq!(late.op, Some(Op::RenewLease("a".into())));
    assert_eq!(op(&facts(), &Seen { has_backend: false, ..seen(&[], None) }, &wish()), None);
}

#[test]
fn leases_are_renewed_at_a_third() {
    assert_eq!(renewal(&held("a")), at(10_000 - 200));
}
