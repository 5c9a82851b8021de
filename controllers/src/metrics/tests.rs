use super::*;
use crds::{CorridorSpec, LatencyClass, MemoryBundleSpec};
use daemons::Owner;
use daemons::corrd::LambdaReading;
use jiff::Timestamp;

fn sample(lambdas: &[u32]) -> CorridorTelemetry {
    let reading = |lambda_nm| LambdaReading { lambda_nm, ..LambdaReading::default() };
    CorridorTelemetry {
        corridor_id: "c".into(),
        owner: Owner::new("cluster", "object").unwrap(),
        sampled_at: Timestamp::UNIX_EPOCH,
        achievable_gbps: 1.0,
        min_gbps: 1,
        ber: None,
        eye_margin: None,
        latency_ns: None,
        temp_c: None,
        power_pj_per_bit: Some(1.0),
        power_saved_kj: Some(5.0),
        drift: None,
        lambdas: lambdas.iter().copied().map(reading).collect(),
    }
}

fn corridor() -> Corridor {
    let mut object = Corridor::new("c", CorridorSpec::new(1, [1550], 1));
    object.metadata.namespace = Some("team".into());
    object
}

/// All series but the one that counts the others.
fn count(metrics: &Metrics) -> usize {
    metrics.gather().iter().map(|family| family.get_metric().len()).sum::<usize>() - 1
}

#[test]
fn series_follow_the_daemon_and_die_with_their_object() {
    let metrics = Metrics::new("here");
    let saved = || metrics.corridors.power_saved.with_label_values(&["team", "c"]).get();
    let mut sample = sample(&[1550]);
    metrics.corridor_met(&corridor());
    metrics.corridor_allocated(&corridor());
    metrics.corridor_sample(&corridor(), &sample);
    assert!((saved() - 5.0).abs() < 1e-9);
    sample.power_saved_kj = Some(2.0);
    metrics.corridor_sample(&corridor(), &sample);
    assert!((saved() - 2.0).abs() < 1e-9, "a daemon that begins again is followed");
    let labelled = |family: &prometheus::proto::MetricFamily| {
        let labels = family.get_metric()[0].get_label();
        labels.iter().any(|label| label.name() == "cluster" && label.value() == "here")
    };
    assert!(metrics.gather().iter().all(labelled), "every series names its cluster");
    metrics.forget_corridor(&corridor());
    assert_eq!(count(&metrics), 0);
    assert_eq!(metrics.rows.lock().count, 0);
}

#[test]
fn allocations_are_counted_from_0_when_an_object_is_met() {
    let metrics = Metrics::new("here");
    let mut bundle = MemoryBundle::new("b", MemoryBundleSpec::new(1 << 30, LatencyClass::T2, 8));
    bundle.metadata.namespace = Some("team".into());
    let told = |series: &str| {
        let families = metrics.gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families).unwrap();
        text.contains(series)
    };
    let of_corridor = "corridor_allocations_total{corridor=\"c\",namespace=\"team\",type=\"SiCorridor\",cluster=\"here\"}";
    let of_bundle = "ffm_allocations_total{bundle=\"b\",namespace=\"team\",cluster=\"here\"}";
    metrics.corridor_met(&corridor());
    metrics.bundle_met(&bundle);
    for series in [of_corridor, of_bundle] {
        assert!(told(&format!("{series} 0")), "{series}");
    }
    metrics.corridor_allocated(&corridor());
    metrics.bundle_allocated(&bundle);
    for series in [of_corridor, of_bundle] {
        assert!(told(&format!("{series} 1")), "{series}");
    }
    metrics.forget_objects();
    assert_eq!(count(&metrics), 0);
}

#[test]
fn a_wavelength_that_the_path_lost_has_no_series() {
    let metrics = Metrics::new("here");
    metrics.corridor_sample(&corridor(), &sample(&[1550, 1551]));
    let with_two = count(&metrics);
    metrics.corridor_sample(&corridor(), &sample(&[1550]));
    assert!(count(&metrics) < with_two);
    assert_eq!(metrics.rows.lock().count, 2, "the Corridor and one wavelength");
}

#[test]
fn too_many_objects_are_counted_instead_of_shown() {
    let metrics = Metrics::new("here");
    metrics.rows.lock().count = ROWS_MAX - 1;
    metrics.corridor_sample(&corridor(), &sample(&[1550]));
    assert_eq!((count(&metrics), metrics.dropped.get()), (0, 1));
}
