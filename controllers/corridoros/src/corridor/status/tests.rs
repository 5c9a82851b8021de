use super::*;
use crate::lifecycle::{Drift, drift};
use crds::{CorridorSpec, Phase, Recalibration};
use daemons::Owner;
use daemons::corrd::CorridorRequest;

const TARGET: f64 = 1e-12;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn object() -> crds::Corridor {
    let mut spec = CorridorSpec::new(4, [1550], 100);
    spec.latency_budget_ns = Some(250);
    spec.recalibration = Some(Recalibration { target_ber: Some(TARGET), ambient_profile: None });
    crds::Corridor::new("c", spec)
}

fn allocation() -> Corridor {
    let owner = Owner::new("cluster", "object").unwrap();
    let request: CorridorRequest = crate::corridor::plan::request(&object().spec, &owner, None);
    Corridor {
        corridor_id: "c".into(),
        owner,
        idempotency_key: request.key(),
        path: request.path,
        achievable_gbps: 120.0,
        latency_ns: Some(200.0),
        policy_lease_ttl_s: 300,
        lease_expires_at: at(0),
        created_at: at(0),
    }
}

fn sample(gbps: f64, ber: f64) -> CorridorTelemetry {
    CorridorTelemetry {
        corridor_id: "c".into(),
        owner: allocation().owner,
        sampled_at: at(0),
        achievable_gbps: gbps,
        min_gbps: 100,
        ber: Some(ber),
        target_ber: None,
        eye_margin: None,
        latency_ns: Some(200.0),
        temp_c: Some(40.0),
        power_pj_per_bit: Some(1.0),
        power_saved_kj: None,
        drift: Some("low".into()),
        lambdas: Vec::new(),
    }
}

fn settings() -> Settings {
    Settings { ber_dwell: Duration::from_secs(100), ..Settings::default() }
}

/// Feeds samples ten seconds apart; returns the reasons and how often a remedy was asked for.
fn run(bers: impl IntoIterator<Item = f64>) -> (Vec<Option<&'static str>>, usize) {
    let (mut signals, mut remedies) = (Signals::default(), 0);
    let reasons = bers.into_iter().enumerate().map(|(index, ber)| {
        let now = at(i64::try_from(index).unwrap() * 10);
        let sample = CorridorTelemetry { sampled_at: now, ..sample(120.0, ber) };
        let health = Corridors::judge(
            &object(),
            &allocation(),
            Some(&sample),
            &mut signals,
            &settings(),
            now,
        );
        if health.remedy.is_some() {
            remedies += 1;
            signals.recalibrated(now);
        }
        health.fault.map(|(reason, _)| reason)
    });
    (reasons.collect(), remedies)
}

#[test]
fn capacity_and_latency_apply_at_the_first_sample() {
    let look = |sample: &CorridorTelemetry| {
        let signals = &mut Signals::default();
        Corridors::judge(&object(), &allocation(), Some(sample), signals, &settings(), at(0)).fault
    };
    assert_eq!(look(&sample(100.0, 0.0)), None);
    assert_eq!(look(&sample(99.999, 0.0)).unwrap().0, not_ready::BELOW_FLOOR);
    let slow = CorridorTelemetry { latency_ns: Some(251.0), ..sample(120.0, 0.0) };
    assert_eq!(look(&slow).unwrap().0, not_ready::LATENCY_OVER_BUDGET);
}

#[test]
fn readings_that_alternate_around_floor_and_budget_fall_at_once_and_return_once() {
    let (mut signals, settings) = (Signals::default(), settings());
    let mut look = |second: i64, gbps: f64, latency_ns: f64| {
        let sample = CorridorTelemetry { latency_ns: Some(latency_ns), ..sample(gbps, 0.0) };
        Corridors::judge(
            &object(),
            &allocation(),
            Some(&sample),
            &mut signals,
            &settings,
            at(second),
        )
    };
    let reasons: Vec<_> = (0..200)
        .map(|second| {
            // Where one limit is kept the other is crossed.
            let (gbps, latency_ns) = if second % 2 == 0 { (99.9, 249.9) } else { (100.1, 250.1) };
            look(second, gbps, latency_ns).fault.map(|(reason, _)| reason)
        })
        .collect();
    let changes = reasons.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(reasons[0], Some(not_ready::BELOW_FLOOR), "at the first sample");
    assert_eq!(changes, 2, "{:?} …", &reasons[..8]);
    let health = look(200, 100.1, 249.9);
    assert_eq!(health.fault.unwrap().0, not_ready::BELOW_FLOOR);
    assert_eq!(health.recheck_after, Some(Duration::from_secs(4)), "kept since a second ago");
    assert_eq!(look(205, 100.1, 249.9).fault, None);
}

#[test]
fn jitter_around_the_target_does_nothing_at_all() {
    let jitter = (0..200).map(|index| if index % 3 == 0 { TARGET * 3.0 } else { TARGET * 0.8 });
    let (reasons, remedies) = run(jitter);
    assert!(reasons.iter().all(Option::is_none));
    assert_eq!(remedies, 0);
}

#[test]
fn a_lasting_drift_is_tuned_first_and_degrades_once() {
    let drift = std::iter::repeat_n(TARGET * 5.0, 20).chain(std::iter::repeat_n(TARGET * 0.7, 30));
    let (reasons, remedies) = run(drift.chain(std::iter::repeat_n(TARGET * 0.1, 20)));
    let flips = reasons.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(flips, 2, "{reasons:?}");
    assert_eq!(reasons[10], Some(not_ready::BER_ABOVE_TARGET));
    assert_eq!(reasons[49], Some(not_ready::BER_ABOVE_TARGET), "inside the band nothing changes");
    assert_eq!(*reasons.last().unwrap(), None);
    assert!((1..=2).contains(&remedies), "{remedies}");
}

#[test]
fn what_was_measured_before_a_tuning_is_not_held_against_it() {
    let mut signals = Signals::default();
    let drifted = sample(120.0, TARGET * 5.0);
    let mut look = |now| {
        Corridors::judge(
            &object(),
            &allocation(),
            Some(&drifted),
            &mut signals,
            &settings(),
            at(now),
        )
    };
    look(0);
    assert!(look(60).remedy.is_some());
    signals.recalibrated(at(60));
    let later = Corridors::judge(
        &object(),
        &allocation(),
        Some(&drifted),
        &mut signals,
        &settings(),
        at(1000),
    );
    assert_eq!(later.fault, None, "the same sample");
    let again = CorridorTelemetry { sampled_at: at(1001), ..drifted };
    let later = Corridors::judge(
        &object(),
        &allocation(),
        Some(&again),
        &mut signals,
        &settings(),
        at(1001),
    );
    assert_eq!(later.fault.unwrap().0, not_ready::BER_ABOVE_TARGET, "a new one");
}

#[test]
fn no_reading_says_nothing_and_a_restart_remembers_from_the_status() {
    let mut signals = Signals {
        ber: BerSignals { is_bad: Some(true), ..BerSignals::default() },
        ..Signals::default()
    };
    let health = Corridors::judge(&object(), &allocation(), None, &mut signals, &settings(), at(0));
    assert_eq!(health.fault.unwrap().0, not_ready::BER_ABOVE_TARGET);
}

fn written(gbps: f64, ber: f64) -> CorridorStatus {
    let base = StatusBase {
        phase: Phase::Ready,
        generation: 1,
        conditions: Vec::new(),
        attestation_expires_at: None,
    };
    Corridors::status(Some(&allocation()), Some(&sample(gbps, ber)), base)
}

#[test]
fn readings_inside_their_deadband_are_not_written() {
    let mut object = object();
    object.status = Some(written(120.0, TARGET));
    let table = [
        (written(120.0, TARGET), Drift::None),
        (written(124.9, TARGET * 9.0), Drift::None),
        (written(125.1, TARGET), Drift::Reading),
        (written(120.0, TARGET * 11.0), Drift::Reading),
        (written(120.0, TARGET / 11.0), Drift::Reading),
        (written(99.0, TARGET), Drift::Transition),
        (
            CorridorStatus { phase: Some(Phase::Degraded), ..written(120.0, TARGET) },
            Drift::Transition,
        ),
        (CorridorStatus { floor_gbps: Some(90.0), ..written(120.0, TARGET) }, Drift::Transition),
    ];
    for (row, (next, expected)) in table.into_iter().enumerate() {
        assert_eq!(drift::<Corridors>(&object, &next), expected, "row {row}");
    }
}

#[test]
fn what_belongs_to_the_scheduler_is_never_written() {
    let value = serde_json::to_value(written(120.0, TARGET)).unwrap();
    assert_eq!((value.get("inUse"), value.get("inUseBy")), (None, None));
}

#[test]
fn the_daemons_own_target_counts_where_none_is_asked_for() {
    let mut object = object();
    object.spec.recalibration = None;
    let mut signals = Signals::default();
    let mut judged = |second: i64, target_ber| {
        let now = at(second);
        let sample = CorridorTelemetry { sampled_at: now, target_ber, ..sample(120.0, 1e-9) };
        let health =
            Corridors::judge(&object, &allocation(), Some(&sample), &mut signals, &settings(), now);
        (health.fault, health.remedy.is_some())
    };
    assert_eq!(judged(0, Some(1e-12)), (None, false));
    assert_eq!(judged(60, Some(1e-12)), (None, true), "it is tuned before it degrades");
    judged(100, Some(1e-12));
    let told = "the bit error rate of 1.0e-9 stays above its target of 1.0e-12".to_owned();
    assert_eq!(judged(110, Some(1e-12)).0, Some((not_ready::BER_ABOVE_TARGET, told)));
    assert_eq!(judged(120, None).0, None, "a daemon without a target is not judged by one");
}
