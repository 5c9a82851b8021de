use proptest::prelude::*;

use super::*;
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

proptest! {
    /// Left alone, a path never falls below its floor or its target, so nothing flaps by itself.
    #[test]
    fn a_healthy_path_keeps_its_floor_and_target(
        seed: u64, lanes in 1_u32..64, share in 0.01_f64..=1.0, seconds in 0_i64..10_000_000,
    ) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let min_gbps = ((f64::from(lanes * 112) * share) as u32).max(1);
        let path = PathSpec { lanes, min_gbps, lambda_nm: vec![1310], ..path() };
        let sample = sample(seed, &record(path), at(seconds));
        prop_assert!(!sample.is_below_floor(), "{sample:?}");
        prop_assert!(sample.ber.unwrap() < TARGET_BER_DEFAULT, "{sample:?}");
        prop_assert_eq!(sample.eye_margin.as_deref(), Some("ok"));
        prop_assert!(sample.lambdas.iter().all(|it| it.throughput_gbps <= sample.achievable_gbps));
        prop_assert!(sample.power_pj_per_bit.unwrap() > 0.0);
    }
}
