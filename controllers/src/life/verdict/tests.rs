use super::*;
use crate::life::Drift;
use daemons::ticket::TicketFault;

fn facts() -> Facts {
    Facts {
        uid: "u".into(),
        namespace: "n".into(),
        name: "o".into(),
        generation: 3,
        is_deleting: false,
        has_finalizer: true,
        intent: None,
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

/// Allocated, trusted and well.
fn view(facts: &Facts) -> View<'_> {
    View {
        facts,
        backend: "corrd",
        has_backend: true,
        flow: Flow::Flowing,
        unreachable_after: Duration::from_secs(15),
        invalid: None,
        trust: &Trust::NotRequired,
        has_attestd: true,
        is_allocated: true,
        is_matching: true,
        has_extras: false,
        has_change: false,
        waits: None,
        fault: None,
        trouble: None,
    }
}

fn trouble(step: Step, is_refusal: bool) -> Trouble {
    Trouble { step, is_refusal, message: "why".into() }
}

#[test]
fn every_state_has_its_phase_and_reason() {
    let facts = facts();
    let leaving = Facts { is_deleting: true, ..facts.clone() };
    let known = Facts { handle: Some("a".into()), ..facts.clone() };
    let v = || view(&facts);
    let waiting = View { is_allocated: false, is_matching: false, ..v() };
    let long = Flow::Silent(Duration::from_secs(15), "why".into());
    let short = Flow::Silent(Duration::from_secs(14), "why".into());
    let expired = TicketFault::Expired { at: Timestamp::UNIX_EPOCH };
    let asks = Trust::Ask { device: "d".into(), fault: None };
    let stale = Trust::Ask { device: "d".into(), fault: Some(expired) };
    let denied = Trust::Denied { failures: Vec::new(), by_policy: true, message: "why".into() };
    let unknown = Trust::Unknown { message: "why".into() };
    let slow = (not_ready::LATENCY_OVER_BUDGET, "why".to_owned());
    let (refused, failed) = (trouble(Step::Allocate, true), trouble(Step::Allocate, false));
    let no_lease = trouble(Step::RenewLease, false);
    let unattested = trouble(Step::Attest, true);
    let table = [
        (v(), Phase::Ready, FLOOR_MET),
        (View { facts: &leaving, ..v() }, Phase::Releasing, "Releasing"),
        (View { has_backend: false, ..waiting.clone() }, Phase::Pending, "BackendNotConfigured"),
        (View { invalid: Some("why"), ..waiting.clone() }, Phase::Failed, "AllocationRefused"),
        (waiting.clone(), Phase::Allocating, "Allocating"),
        (View { trouble: Some(&refused), ..waiting.clone() }, Phase::Failed, "AllocationRefused"),
        (View { trouble: Some(&failed), ..waiting.clone() }, Phase::Pending, "BackendUnreachable"),
        (View { trouble: Some(&no_lease), ..v() }, Phase::Ready, FLOOR_MET),
        (View { flow: long, facts: &known, ..v() }, Phase::Degraded, "BackendUnreachable"),
        (View { flow: short, ..v() }, Phase::Ready, FLOOR_MET),
        (View { trust: &asks, ..waiting.clone() }, Phase::Allocating, "Allocating"),
        (View { trust: &asks, ..v() }, Phase::Degraded, "AttestationFailed"),
        (View { trust: &stale, ..v() }, Phase::Degraded, "AttestationFailed"),
        (View { trust: &denied, ..v() }, Phase::Degraded, "AttestationFailed"),
        (View { trust: &denied, ..waiting.clone() }, Phase::Failed, "AttestationFailed"),
        (
            View { trust: &asks, trouble: Some(&unattested), ..waiting.clone() },
            Phase::Failed,
            "AttestationFailed",
        ),
        (
            View { trust: &unknown, has_attestd: false, ..waiting },
            Phase::Pending,
            "BackendNotConfigured",
        ),
        (View { fault: Some(&slow), ..v() }, Phase::Degraded, "LatencyOverBudget"),
        (View { has_extras: true, ..v() }, Phase::Allocating, "Allocating"),
        (View { is_matching: false, ..v() }, Phase::Allocating, "Allocating"),
        (View { is_matching: false, waits: Some(Waits::Pods), ..v() }, Phase::Ready, FLOOR_MET),
    ];
    for (row, (view, phase, reason)) in table.into_iter().enumerate() {
        let verdict = decide(&view);
        assert_eq!((verdict.phase, verdict.reason), (phase, reason), "row {row}");
    }
}

#[test]
fn the_transition_time_moves_only_on_a_transition() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut facts = facts();
    let well = conditions(&view(&facts), &decide(&view(&facts)), at(10));
    facts.conditions.clone_from(&well);
    let later = conditions(&view(&facts), &decide(&view(&facts)), at(20));
    assert_eq!(well, later);
    let slow = (not_ready::BELOW_FLOOR, "40 of 100".to_owned());
    let ill = View { fault: Some(&slow), ..view(&facts) };
    let turned = conditions(&ill, &decide(&ill), at(30));
    assert_eq!(turned[0].last_transition_time, Time(at(30)));
    assert_eq!(turned[1], well[1], "the others stay");
    assert_eq!(conditions_drift(&well, &turned), Drift::Turning);
    assert_eq!(conditions_drift(&well, &later), Drift::None);
    assert!(turned.iter().all(|it| it.observed_generation == Some(3)));
}

#[test]
fn a_change_that_waits_is_pending_and_says_why() {
    let facts = facts();
    let refused = trouble(Step::Change, true);
    let look = |view: View<'_>| {
        let all = conditions(&view, &decide(&view), Timestamp::UNIX_EPOCH);
        let it = condition::find(&all, condition::UPDATE_PENDING).unwrap();
        (it.status.clone(), it.reason.clone())
    };
    let is = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!(look(view(&facts)), is("False", "UpToDate"));
    let waits = |waits| View { waits: Some(waits), ..view(&facts) };
    assert_eq!(look(waits(Waits::Pods)), is("True", "InUse"));
    assert_eq!(look(waits(Waits::Trust)), is("True", "AttestationFailed"));
    let no = View { trouble: Some(&refused), has_change: true, ..view(&facts) };
    assert_eq!(look(no), is("True", "AllocationRefused"));
}

#[test]
fn a_release_that_waits_names_the_pods_and_the_way_out() {
    let pod = |name: &str| crds::PodUse {
        namespace: "team".into(),
        name: name.into(),
        uid: String::new(),
    };
    let pods = ["a", "b", "c", "d", "e"].map(pod);
    let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta::default();
    let used = crate::life::Use { count: Some(7), pods: &pods };
    let facts = Facts { is_deleting: true, ..Facts::new(&metadata, "f", None, None, used, &[]) };
    let told = decide(&View { waits: Some(Waits::Drain), ..view(&facts) }).message;
    let expected = "waits until no Pod uses it: team/a, team/b, team/c and 4 more; end them, or set \
                    the annotation corridoros.io/force-release=\"true\" to release it all the same";
    assert_eq!(told, expected);
}

#[test]
fn every_condition_has_a_message() {
    let facts = facts();
    for view in [view(&facts), View { is_allocated: false, ..view(&facts) }] {
        let all = conditions(&view, &decide(&view), Timestamp::UNIX_EPOCH);
        assert!(all.iter().all(|it| !it.message.is_empty()), "{all:?}");
    }
}
