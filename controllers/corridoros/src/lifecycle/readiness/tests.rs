use super::super::drift::{Drift, conditions_drift};
use super::super::testkit;
use super::StatusInput as Input;
use super::*;
use daemons::ticket::TicketFault;

fn observed() -> Observed {
    Observed { generation: 3, ..testkit::observed() }
}

/// Allocated, trusted and well.
fn input(observed: &Observed) -> Input<'_> {
    Input {
        observed,
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
        last_error: None,
    }
}

fn last_error(step: Step, is_refusal: bool) -> StepError {
    StepError { step, is_refusal, message: "why".into() }
}

#[test]
fn every_state_has_its_phase_and_reason() {
    let observed = observed();
    let leaving = Observed { is_deleting: true, ..observed.clone() };
    let known = Observed { handle: Some("a".into()), ..observed.clone() };
    let v = || input(&observed);
    let waiting = Input { is_allocated: false, is_matching: false, ..v() };
    let long = Flow::Silent(Duration::from_secs(15), "why".into());
    let short = Flow::Silent(Duration::from_secs(14), "why".into());
    let expired = TicketFault::Expired { at: Timestamp::UNIX_EPOCH };
    let asks = Trust::Ask { device: "d".into(), fault: None };
    let stale = Trust::Ask { device: "d".into(), fault: Some(expired) };
    let denied = Trust::Denied { failures: Vec::new(), by_policy: true, message: "why".into() };
    let unknown = Trust::Unknown { message: "why".into() };
    let slow = (not_ready::LATENCY_OVER_BUDGET, "why".to_owned());
    let (refused, failed) = (last_error(Step::Allocate, true), last_error(Step::Allocate, false));
    let no_lease = last_error(Step::RenewLease, false);
    let unattested = last_error(Step::Attest, true);
    let table = [
        (v(), Phase::Ready, FLOOR_MET),
        (Input { observed: &leaving, ..v() }, Phase::Releasing, "Releasing"),
        (Input { has_backend: false, ..waiting.clone() }, Phase::Pending, "BackendNotConfigured"),
        (Input { invalid: Some("why"), ..waiting.clone() }, Phase::Failed, "AllocationRefused"),
        (waiting.clone(), Phase::Allocating, "Allocating"),
        (
            Input { last_error: Some(&refused), ..waiting.clone() },
            Phase::Failed,
            "AllocationRefused",
        ),
        (
            Input { last_error: Some(&failed), ..waiting.clone() },
            Phase::Pending,
            "BackendUnreachable",
        ),
        (Input { last_error: Some(&no_lease), ..v() }, Phase::Ready, FLOOR_MET),
        (Input { flow: long, observed: &known, ..v() }, Phase::Degraded, "BackendUnreachable"),
        (Input { flow: short, ..v() }, Phase::Ready, FLOOR_MET),
        (Input { trust: &asks, ..waiting.clone() }, Phase::Allocating, "Allocating"),
        (Input { trust: &asks, ..v() }, Phase::Degraded, "AttestationFailed"),
        (Input { trust: &stale, ..v() }, Phase::Degraded, "AttestationFailed"),
        (Input { trust: &denied, ..v() }, Phase::Degraded, "AttestationFailed"),
        (Input { trust: &denied, ..waiting.clone() }, Phase::Failed, "AttestationFailed"),
        (
            Input { trust: &asks, last_error: Some(&unattested), ..waiting.clone() },
            Phase::Failed,
            "AttestationFailed",
        ),
        (
            Input { trust: &unknown, has_attestd: false, ..waiting },
            Phase::Pending,
            "BackendNotConfigured",
        ),
        (Input { fault: Some(&slow), ..v() }, Phase::Degraded, "LatencyOverBudget"),
        (Input { has_extras: true, ..v() }, Phase::Allocating, "Allocating"),
        (Input { is_matching: false, ..v() }, Phase::Allocating, "Allocating"),
        (Input { is_matching: false, waits: Some(Waits::Pods), ..v() }, Phase::Ready, FLOOR_MET),
    ];
    for (row, (input, phase, reason)) in table.into_iter().enumerate() {
        let readiness = decide(&input);
        assert_eq!((readiness.phase, readiness.reason), (phase, reason), "row {row}");
    }
}

#[test]
fn the_transition_time_moves_only_on_a_transition() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut observed = observed();
    let well = conditions(&input(&observed), &decide(&input(&observed)), at(10));
    observed.conditions.clone_from(&well);
    let later = conditions(&input(&observed), &decide(&input(&observed)), at(20));
    assert_eq!(well, later);
    let slow = (not_ready::BELOW_FLOOR, "40 of 100".to_owned());
    let ill = Input { fault: Some(&slow), ..input(&observed) };
    let turned = conditions(&ill, &decide(&ill), at(30));
    assert_eq!(turned[0].last_transition_time, Time(at(30)));
    assert_eq!(turned[1], well[1], "the others stay");
    assert_eq!(conditions_drift(&well, &turned), Drift::Transition);
    assert_eq!(conditions_drift(&well, &later), Drift::None);
    assert!(turned.iter().all(|it| it.observed_generation == Some(3)));
}

#[test]
fn a_change_that_waits_is_pending_and_says_why() {
    let observed = observed();
    let refused = last_error(Step::Change, true);
    let look = |input: Input<'_>| {
        let all = conditions(&input, &decide(&input), Timestamp::UNIX_EPOCH);
        let it = condition::find(&all, condition::UPDATE_PENDING).unwrap();
        (it.status.clone(), it.reason.clone())
    };
    let is = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!(look(input(&observed)), is("False", "UpToDate"));
    let waits = |waits| Input { waits: Some(waits), ..input(&observed) };
    assert_eq!(look(waits(Waits::Pods)), is("True", "InUse"));
    assert_eq!(look(waits(Waits::Trust)), is("True", "AttestationFailed"));
    let no = Input { last_error: Some(&refused), has_change: true, ..input(&observed) };
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
    let used = crate::lifecycle::Use { count: Some(7), pods: &pods };
    let observed =
        Observed { is_deleting: true, ..Observed::new(&metadata, "f", None, None, used, &[]) };
    let told = decide(&Input { waits: Some(Waits::Drain), ..input(&observed) }).message;
    let expected = "waits until no Pod uses it: team/a, team/b, team/c and 4 more; end them, or set \
                    the annotation corridoros.io/force-release=\"true\" to release it all the same";
    assert_eq!(told, expected);
}

#[test]
fn every_condition_has_a_message() {
    let observed = observed();
    for input in [input(&observed), Input { is_allocated: false, ..input(&observed) }] {
        let all = conditions(&input, &decide(&input), Timestamp::UNIX_EPOCH);
        assert!(all.iter().all(|it| !it.message.is_empty()), "{all:?}");
    }
}
