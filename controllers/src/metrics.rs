//! Every metric of the controllers. Series die with their object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crds::{Corridor, MemoryBundle};
use daemons::corrd::CorridorTelemetry;
use daemons::memqosd::BundleTelemetry;
use kube::ResourceExt;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{CounterVec, GaugeVec, IntCounterVec, Opts, Registry};

/// Counters and gauges of seed 000, under their names there.
pub struct Metrics {
    registry: Registry,
    path: PathSeries,
    ffm: FfmSeries,
    attestation_ok: IntCounterVec,
    attestation_fail: IntCounterVec,
    /// The wavelengths of each path, so that their series can be dropped with it.
    lambdas: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

struct PathSeries {
    allocations: IntCounterVec,
    throughput: GaugeVec,
    power: GaugeVec,
    ber: GaugeVec,
    eye: GaugeVec,
    recalibrations: IntCounterVec,
    bias: GaugeVec,
    lambda_shift: GaugeVec,
    power_saved: CounterVec,
}

struct FfmSeries {
    allocations: IntCounterVec,
    bytes: GaugeVec,
    achieved: GaugeVec,
    moved_pages: CounterVec,
    tail: GaugeVec,
    violations: CounterVec,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let (ok, fail) = ("Attestations that passed.", "Attestations that failed.");
        Self {
            path: PathSeries::new(&registry),
            ffm: FfmSeries::new(&registry),
            attestation_ok: counts(&registry, "attestation_ok_total", ok, &["device"]),
            attestation_fail: counts(
                &registry,
                "attestation_fail_total",
                fail,
                &["device", "reason"],
            ),
            lambdas: Mutex::default(),
            registry,
        }
    }
}

impl PathSeries {
    fn new(registry: &Registry) -> Self {
        let (path, per_lambda) = (&["corridor"], &["corridor", "lambda"]);
        let allocated = &["cluster", "namespace", "corridor", "type"];
        let tuned = &["corridor", "reason"];
        let count = |name, help, labels: &[&str]| counts(registry, name, help, labels);
        let gauge = |name, help, labels: &[&str]| gauges(registry, name, help, labels);
        let total = |name, help, labels: &[&str]| totals(registry, name, help, labels);
        Self {
            allocations: count("corridor_allocations_total", "Allocated Corridors.", allocated),
            throughput: gauge("corridor_throughput_gbps", "Of a wavelength.", per_lambda),
            power: gauge("corridor_power_pj_per_bit", "Energy per bit.", path),
            ber: gauge("corridor_ber", "Bit error rate of a wavelength.", per_lambda),
            eye: gauge("corridor_eye_margin", "Eye margin in dB.", per_lambda),
            recalibrations: count("corridor_recalibrations_total", "By HELIOPASS.", tuned),
            bias: gauge("heliopass_bias_mv", "Bias of a wavelength.", per_lambda),
            lambda_shift: gauge("heliopass_lambda_shift_nm", "Of a wavelength.", per_lambda),
            power_saved: total("heliopass_power_saved_kj_total", "Energy saved.", path),
        }
    }
}

impl FfmSeries {
    fn new(registry: &Registry) -> Self {
        let (bundle, allocated) = (&["bundle"], &["namespace", "bundle"]);
        let gauge = |name, help| gauges(registry, name, help, bundle);
        let total = |name, help| totals(registry, name, help, bundle);
        let help = "Allocated bundles.";
        Self {
            allocations: counts(registry, "ffm_allocations_total", help, allocated),
            bytes: gauge("ffm_allocation_bytes", "Size."),
            achieved: gauge("ffm_achieved_gbs", "Bandwidth in GB/s."),
            moved_pages: total("ffm_moved_pages_total", "Pages moved between tiers."),
            tail: gauge("ffm_tail_p99_ms", "99th percentile of access latency."),
            violations: total("ffm_qos_violations_total", "Falls below the floor."),
        }
    }
}

impl Metrics {
    /// Everything that is known now.
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        self.registry.gather()
    }

    pub(crate) fn corridor_allocated(&self, cluster: &str, object: &Corridor) {
        let namespace = object.namespace().unwrap_or_default();
        let kind = object.spec.corridor_type.to_string();
        let labels = [cluster, &namespace, &object.name_any(), &kind];
        self.path.allocations.with_label_values(&labels).inc();
    }

    pub(crate) fn corridor_recalibrated(&self, object: &Corridor, reason: &str) {
        self.path.recalibrations.with_label_values(&[label(object).as_str(), reason]).inc();
    }

    pub(crate) fn corridor_sample(&self, object: &Corridor, sample: &CorridorTelemetry) {
        let path = label(object);
        set(&self.path.power, &[&path], sample.power_pj_per_bit);
        raise(&self.path.power_saved, &path, sample.power_saved_kj.unwrap_or_default());
        let mut lambdas = self.lambdas.lock();
        let known = lambdas.entry(path.clone()).or_default();
        for reading in &sample.lambdas {
            let lambda = reading.lambda_nm.to_string();
            let labels = [path.as_str(), lambda.as_str()];
            set(&self.path.throughput, &labels, Some(reading.throughput_gbps));
            set(&self.path.ber, &labels, reading.ber);
            set(&self.path.eye, &labels, reading.eye_margin_db);
            set(&self.path.bias, &labels, reading.bias_mv);
            set(&self.path.lambda_shift, &labels, reading.lambda_shift_nm);
            known.insert(lambda);
        }
    }

    pub(crate) fn forget_corridor(&self, cluster: &str, object: &Corridor) {
        let path = label(object);
        let lambdas = self.lambdas.lock().remove(&path).unwrap_or_default();
        for lambda in &lambdas {
            for gauges in [
                &self.path.throughput,
                &self.path.ber,
                &self.path.eye,
                &self.path.bias,
                &self.path.lambda_shift,
            ] {
                // What was never set cannot be removed, and need not be.
                let _ = gauges.remove_label_values(&[&path, lambda]);
            }
        }
        let _ = self.path.power.remove_label_values(&[&path]);
        let _ = self.path.power_saved.remove_label_values(&[&path]);
        for reason in ["ber_drift", "spec_change"] {
            let _ = self.path.recalibrations.remove_label_values(&[path.as_str(), reason]);
        }
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        for kind in ["SiCorridor", "CarbonCorridor"] {
            let labels = [cluster, &namespace, &name, kind];
            let _ = self.path.allocations.remove_label_values(&labels);
        }
    }

    pub(crate) fn bundle_allocated(&self, object: &MemoryBundle) {
        let namespace = object.namespace().unwrap_or_default();
        self.ffm.allocations.with_label_values(&[&namespace, &object.name_any()]).inc();
    }

    pub(crate) fn bundle_sample(&self, object: &MemoryBundle, sample: &BundleTelemetry) {
        let bundle = label(object);
        set(&self.ffm.achieved, &[&bundle], Some(sample.achieved_gbs));
        set(&self.ffm.tail, &[&bundle], sample.tail_p99_ms);
        #[expect(clippy::cast_precision_loss, reason = "amounts on a graph; bytes are < 2^53")]
        let (bytes, pages, violations) =
            (object.spec.bytes as f64, sample.moved_pages as f64, sample.qos_violations as f64);
        set(&self.ffm.bytes, &[&bundle], Some(bytes));
        raise(&self.ffm.moved_pages, &bundle, pages);
        raise(&self.ffm.violations, &bundle, violations);
    }

    pub(crate) fn forget_bundle(&self, object: &MemoryBundle) {
        let (namespace, bundle) = (object.namespace().unwrap_or_default(), label(object));
        let _ = self.ffm.allocations.remove_label_values(&[&namespace, &object.name_any()]);
        for gauges in [&self.ffm.bytes, &self.ffm.achieved, &self.ffm.tail] {
            let _ = gauges.remove_label_values(&[&bundle]);
        }
        for totals in [&self.ffm.moved_pages, &self.ffm.violations] {
            let _ = totals.remove_label_values(&[&bundle]);
        }
    }

    pub(crate) fn attestation_passed(&self, device: &str) {
        self.attestation_ok.with_label_values(&[device]).inc();
    }

    pub(crate) fn attestation_failed(&self, device: &str, reason: &str) {
        self.attestation_fail.with_label_values(&[device, reason]).inc();
    }
}

/// Names are unique only within a namespace.
fn label<K: ResourceExt>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// A reading that is impossible leaves the last possible one.
fn set(gauges: &GaugeVec, labels: &[&str], value: Option<f64>) {
    if let Some(value) = value {
        gauges.with_label_values(labels).set(value);
    }
}

/// The daemon counts; ours follows it, and begins again when the daemon does.
fn raise(totals: &CounterVec, label: &str, value: f64) {
    let counter = totals.with_label_values(&[label]);
    if value < counter.get() {
        counter.reset();
    }
    counter.inc_by(value - counter.get());
}

fn counts(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn totals(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> CounterVec {
    registered(registry, CounterVec::new(Opts::new(name, help), labels))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    registered(registry, GaugeVec::new(Opts::new(name, help), labels))
}

/// The names are fixed and distinct, so neither step can fail.
#[expect(clippy::expect_used, reason = "a wrong name would be seen by the first test")]
fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: Result<C, prometheus::Error>,
) -> C {
    let collector = collector.expect("names and labels are valid");
    registry.register(Box::new(collector.clone())).expect("each name is used once");
    collector
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::CorridorSpec;
    use daemons::Owner;
    use daemons::corrd::LambdaReading;
    use jiff::Timestamp;

    #[test]
    fn series_follow_the_daemon_and_die_with_their_object() {
        let metrics = Metrics::default();
        let mut sample = CorridorTelemetry {
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
            lambdas: vec![LambdaReading { lambda_nm: 1550, ..LambdaReading::default() }],
        };
        let mut object = Corridor::new("c", CorridorSpec::new(1, [1550], 1));
        object.metadata.namespace = Some("team".into());
        let saved = || metrics.path.power_saved.with_label_values(&["team/c"]).get();
        metrics.corridor_allocated("cluster", &object);
        metrics.corridor_sample(&object, &sample);
        assert!((saved() - 5.0).abs() < 1e-9);
        sample.power_saved_kj = Some(2.0);
        metrics.corridor_sample(&object, &sample);
        assert!((saved() - 2.0).abs() < 1e-9, "a daemon that begins again is followed");
        assert!(!metrics.gather().is_empty());
        metrics.forget_corridor("cluster", &object);
        assert!(metrics.gather().is_empty());
    }
}
