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
        target_ber: None,
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

/// All series of objects: without those that are there from the start.
fn count(metrics: &Metrics) -> usize {
    let series = |metrics: &Metrics| {
        metrics.gather().iter().map(|family| family.get_metric().len()).sum::<usize>()
    };
    series(metrics) - series(&Metrics::new("here"))
}

fn told(metrics: &Metrics) -> String {
    prometheus::TextEncoder::new().encode_to_string(&metrics.gather()).unwrap()
}

fn bundle() -> MemoryBundle {
    let mut bundle = MemoryBundle::new("b", MemoryBundleSpec::new(1 << 30, LatencyClass::T2, 8));
    bundle.metadata.namespace = Some("team".into());
    bundle
}

#[test]
fn series_follow_the_daemon_and_die_with_their_object() {
    let metrics = Metrics::new("here");
    let saved = || metrics.corridors.power_saved.with_label_values(&["team", "c"]).get();
    let mut sample = sample(&[1550]);
    metrics.corridor_added(&corridor());
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
    let bundle = bundle();
    let told = |series: &str| told(&metrics).contains(series);
    let of_corridor = "corridor_allocations_total{corridor=\"c\",namespace=\"team\",type=\"SiCorridor\",cluster=\"here\"}";
    let of_bundle = "ffm_allocations_total{bundle=\"b\",namespace=\"team\",cluster=\"here\"}";
    metrics.corridor_added(&corridor());
    metrics.bundle_added(&bundle);
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

#[test]
fn passes_over_every_kind_are_0_from_the_start() {
    use kube::Resource as _;
    let text = told(&Metrics::new("here"));
    let kinds = [Corridor::kind(&()), MemoryBundle::kind(&()), crds::AttestationPolicy::kind(&())];
    for kind in kinds {
        let series = format!("corridor_reconciles_total{{kind=\"{kind}\",cluster=\"here\"}} 0");
        assert!(text.contains(&series), "{series} in\n{text}");
    }
}

const LOST: ObjectState = ObjectState { is_refused: false, has_nothing: true, is_deleting: false };

#[test]
fn an_object_without_a_path_keeps_its_floor_and_loses_what_was_measured() {
    let metrics = Metrics::new("here");
    metrics.corridor_added(&corridor());
    metrics.corridor_sample(&corridor(), &sample(&[1550, 1551]));
    metrics.set_corridor_state(&corridor(), ObjectState { has_nothing: false, ..LOST });
    let labels = "{corridor=\"c\",namespace=\"team\",cluster=\"here\"}";
    let (measured, floor) =
        (format!("corridor_achievable_gbps{labels} 1"), format!("corridor_min_gbps{labels} 1"));
    let before = told(&metrics);
    assert!(before.contains(&measured) && before.contains(&floor), "{before}");
    metrics.set_corridor_state(&corridor(), LOST);
    let after = told(&metrics);
    assert!(after.contains(&floor) && !after.contains("lambda="), "{after}");
    assert!(!after.contains("corridor_achievable_gbps{"), "{after}");
    assert_eq!(metrics.rows.lock().count, 1, "the Corridor alone");
    metrics.corridor_sample(&corridor(), &sample(&[1550]));
    assert!(told(&metrics).contains(&measured), "it has a path again");
    metrics.set_corridor_state(&corridor(), ObjectState { is_deleting: true, ..LOST });
    assert!(!told(&metrics).contains("corridor_min_gbps{"), "it was given back");
    metrics.bundle_added(&bundle());
    metrics.set_bundle_state(&bundle(), 8, LOST);
    let floor = "ffm_bandwidth_floor_gbs{bundle=\"b\",namespace=\"team\",cluster=\"here\"} 8";
    assert!(told(&metrics).contains(floor), "{}", told(&metrics));
}

#[test]
fn a_refusal_ends_with_its_reason_and_with_its_object() {
    let metrics = Metrics::new("here");
    let refused = ObjectState { is_refused: true, ..LOST };
    let series = |kind: &str, name: &str| {
        format!("corridor_object_refused{{kind=\"{kind}\",namespace=\"team\",object=\"{name}\"")
    };
    metrics.corridor_added(&corridor());
    metrics.bundle_added(&bundle());
    metrics.set_corridor_state(&corridor(), refused);
    metrics.set_bundle_state(&bundle(), 8, refused);
    let text = told(&metrics);
    assert!(text.contains(&series("Corridor", "c")), "{text}");
    assert!(text.contains(&series("MemoryBundle", "b")), "{text}");
    metrics.set_corridor_state(&corridor(), LOST);
    metrics.forget_bundle(&bundle());
    assert!(!told(&metrics).contains("corridor_object_refused{"));
    metrics.set_corridor_state(&corridor(), refused);
    metrics.forget_corridor(&corridor());
    assert_eq!(count(&metrics), 0);
}
