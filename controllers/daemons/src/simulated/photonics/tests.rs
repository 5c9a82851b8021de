use proptest::prelude::*;

use super::*;
use crate::corrd::{Qos, Recalibration};
use crate::identity::Owner;
use crate::simulated::records::ForcedCorridor;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn path() -> PathSpec {
    PathSpec {
        lanes: 8,
        lambda_nm: vec![1550, 1551, 1552, 1553],
        min_gbps: 400,
        latency_budget_ns: Some(250),
        reach_mm: Some(75),
        device_id: Some("phot-0".into()),
        ..PathSpec::default()
    }
}

fn record(path: PathSpec) -> CorridorRecord {
    CorridorRecord {
        id: "cor-000001".into(),
        owner: Owner::new("c", "o").unwrap(),
        key: "o:0123456789abcdef".parse().unwrap(),
        asked: path.clone(),
        path,
        created_at: at(0),
        lease_expires_at: at(300),
        tuned_at: at(0),
        forced: ForcedCorridor::default(),
    }
}

fn refusal(path: &PathSpec) -> Option<RefusalReason> {
    check_feasible(path).err().map(|refusal| refusal.reason)
}

#[test]
fn what_physics_forbids_is_refused_by_name() {
    assert_eq!(refusal(&path()), None);
    let far = PathSpec { reach_mm: Some(20_000_000), latency_budget_ns: None, ..path() };
    assert_eq!(refusal(&far), Some(RefusalReason::Reach));
    let free_space = PathSpec {
        mode: CorridorMode::FreeSpace,
        reach_mm: Some(1_000_001),
        latency_budget_ns: None,
        ..path()
    };
    assert_eq!(refusal(&free_space), Some(RefusalReason::Reach));
    let slow = PathSpec { reach_mm: Some(1_000_000), ..path() };
    assert_eq!(refusal(&slow), Some(RefusalReason::LatencyBudget));
    let crowded = PathSpec { min_gbps: 8 * 112 + 1, ..path() };
    assert_eq!(refusal(&crowded), Some(RefusalReason::Lanes));
    let carbon = PathSpec { corridor_type: CorridorType::CarbonCorridor, ..crowded };
    assert_eq!(refusal(&carbon), None);
    let invisible = PathSpec { lambda_nm: vec![1670], ..path() };
    assert_eq!(refusal(&invisible), Some(RefusalReason::Lambda));
}

#[test]
fn the_same_seed_path_and_time_give_the_same_sample() {
    let record = record(path());
    assert_eq!(sample(1, &record, at(500)), sample(1, &record, at(500)));
    assert_ne!(sample(1, &record, at(500)), sample(2, &record, at(500)));
    assert_ne!(sample(1, &record, at(500)), sample(1, &record, at(560)));
}

#[test]
fn errors_cost_bandwidth_and_close_the_eye() {
    let mut record = record(path());
    record.forced.ber_drift_decades = 8.0;
    let sample = sample(1, &record, at(10));
    assert!(sample.is_below_floor(), "{sample:?}");
    assert_eq!(sample.eye_margin.as_deref(), Some("fail"));
    assert_eq!(sample.drift.as_deref(), Some("high"));
}

#[test]
fn a_forced_capacity_is_what_is_reported() {
    let mut record = record(path());
    record.forced.achievable_gbps = Some(40.0);
    assert!((sample(1, &record, at(10)).achievable_gbps - 40.0).abs() < 1e-9);
}

fn with_qos(pfc: bool, priority: Option<PriorityClass>) -> CorridorTelemetry {
    let qos = Some(Qos { pfc, priority });
    sample(1, &record(PathSpec { qos, ..path() }), at(500))
}

#[test]
fn a_higher_class_carries_more_beyond_the_floor() {
    let carried = PriorityClass::ALL.map(|class| with_qos(false, Some(class)).achievable_gbps);
    assert!(carried.is_sorted_by(|low, high| low < high), "{carried:?}");
    assert!(carried[0] > f64::from(path().min_gbps), "the lowest keeps the floor");
    let silver = with_qos(false, Some(PriorityClass::Silver));
    assert_eq!(with_qos(false, None), silver, "silver is the default");
}

#[test]
fn flow_control_costs_latency_and_counts_against_the_budget() {
    let latency = |pfc| with_qos(pfc, None).latency_ns.unwrap();
    assert!((latency(true) - latency(false) - PAUSE_NS).abs() < 1e-9);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let budget = latency(false).ceil() as u32;
    let tight = PathSpec { latency_budget_ns: Some(budget), ..path() };
    assert_eq!(refusal(&tight), None);
    let qos = Some(Qos { pfc: true, priority: None });
    assert_eq!(refusal(&PathSpec { qos, ..tight }), Some(RefusalReason::LatencyBudget));
}

#[test]
fn surroundings_show_in_temperature_and_energy() {
    let of = |profile| {
        let recalibration =
            Some(Recalibration { target_ber: None, ambient_profile: Some(profile) });
        sample(1, &record(PathSpec { recalibration, ..path() }), at(500))
    };
    let (cold, hot) = (of(AmbientProfile::ColdAisle), of(AmbientProfile::HotAisle));
    assert!(hot.temp_c.unwrap() > cold.temp_c.unwrap() + 10.0, "{hot:?} {cold:?}");
    assert!(hot.power_pj_per_bit > cold.power_pj_per_bit);
    assert_eq!(of(AmbientProfile::LabDefault), sample(1, &record(path()), at(500)));
}

proptest! {
    /// Left alone, a path never falls below its floor or its target, so nothing flaps by itself.
    #[test]
    fn a_healthy_path_keeps_its_floor_and_target(
        seed: u64, lanes in 1_u32..64, share in 0.01_f64..=1.0, seconds in 0_i64..10_000_000,
        pfc: bool, class in 0_usize..4, profile in 0_usize..4,
    ) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let min_gbps = ((f64::from(lanes * 112) * share) as u32).max(1);
        let qos = Some(Qos { pfc, priority: Some(PriorityClass::ALL[class]) });
        let ambient_profile = Some(AmbientProfile::ALL[profile]);
        let recalibration = Some(Recalibration { target_ber: None, ambient_profile });
        let path =
            PathSpec { lanes, min_gbps, lambda_nm: vec![1310], qos, recalibration, ..path() };
        let sample = sample(seed, &record(path), at(seconds));
        prop_assert!(!sample.is_below_floor(), "{sample:?}");
        prop_assert!(sample.ber.unwrap() < TARGET_BER_DEFAULT, "{sample:?}");
        prop_assert_eq!(sample.eye_margin.as_deref(), Some("ok"));
        prop_assert!(sample.lambdas.iter().all(|it| it.throughput_gbps <= sample.achievable_gbps));
        prop_assert!(sample.power_pj_per_bit.unwrap() > 0.0);
    }
}
