//! The series of the controllers. Those of an object are removed with it.

mod attestation;
mod object_state;
mod series;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use controller_runtime::SeriesMaker;
use crds::{Corridor, MemoryBundle};
use daemons::corrd::CorridorTelemetry;
use daemons::memqosd::BundleTelemetry;
use kube::ResourceExt;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{Counter, CounterVec, Gauge, GaugeVec, IntCounter, IntCounterVec, Registry};

use self::attestation::AttestationSeries;
pub(crate) use self::object_state::ObjectState;
use self::series::{BundleSeries, CorridorSeries};

/// Objects, and wavelengths of Corridors, that have series. A wavelength has five; half a million
/// series are as much as one Prometheus scrape should bring.
const ROWS_MAX: usize = 100_000;

/// Kinds, as labels name them.
const CORRIDOR: &str = "Corridor";
const BUNDLE: &str = "MemoryBundle";
const POLICY: &str = "AttestationPolicy";

const RECALIBRATION_REASONS: [&str; 2] = ["ber_drift", "spec_change"];

/// Counters and gauges of seed 000, under their names there, each with `cluster` and `namespace`.
pub struct Metrics {
    registry: Registry,
    collectors: Vec<Box<dyn Collector>>,
    corridors: CorridorSeries,
    bundles: BundleSeries,
    attestation: AttestationSeries,
    /// Objects whose own spec or policies refuse them.
    refused: GaugeVec,
    reconciles: IntCounterVec,
    dropped: IntCounter,
    /// Objects with series, so that these can be removed with them.
    rows: Mutex<Rows>,
}

/// Namespace and name.
type Name = (String, String);

#[derive(Default)]
struct Rows {
    corridors: HashMap<Name, CorridorRow>,
    bundles: HashSet<Name>,
    count: usize,
}

/// The series of one Corridor, found once: every sample sets two dozen of them.
#[derive(Default)]
struct CorridorRow {
    gauges: [Option<Gauge>; 3],
    power_saved: Option<Counter>,
    lambdas: BTreeMap<u32, [Option<Gauge>; 5]>,
}

impl Rows {
    /// Gives the Corridor and its wavelengths a row each, if there is room. Returns the wavelengths that it lost.
    fn admit_corridor(&mut self, name: &Name, lambdas: &BTreeSet<u32>) -> Option<Vec<u32>> {
        let known = self.corridors.get(name).map_or(0, |known| known.lambdas.len() + 1);
        let count = self.count - known + lambdas.len() + 1;
        if count > ROWS_MAX {
            return None;
        }
        self.count = count;
        let row = self.corridors.entry(name.clone()).or_default();
        let lost: Vec<u32> =
            row.lambdas.keys().filter(|lambda| !lambdas.contains(lambda)).copied().collect();
        row.lambdas.retain(|lambda, _| lambdas.contains(lambda));
        for lambda in lambdas {
            row.lambdas.entry(*lambda).or_default();
        }
        Some(lost)
    }

    fn admit_bundle(&mut self, name: &Name) -> bool {
        if self.bundles.contains(name) {
            return true;
        }
        let fits = self.count < ROWS_MAX;
        if fits {
            self.count += 1;
            self.bundles.insert(name.clone());
        }
        fits
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// `cluster`: the label by which one Prometheus distinguishes clusters.
    #[expect(clippy::expect_used, reason = "the label's name is valid, whatever its value")]
    pub fn new(cluster: &str) -> Self {
        let label = HashMap::from([("cluster".to_owned(), cluster.to_owned())]);
        let registry = Registry::new_custom(None, Some(label)).expect("a valid label");
        let make = SeriesMaker::new(&registry);
        let mut this = Self {
            collectors: Vec::new(),
            corridors: CorridorSeries::new(&make),
            bundles: BundleSeries::new(&make),
            attestation: AttestationSeries::new(&make),
            refused: object_state::refused(&make),
            reconciles: make.counts(
                "corridor_reconciles_total",
                "Reconciles of objects by the controllers, by kind.",
                &["kind"],
            ),
            dropped: make.count(
                "corridor_series_dropped_total",
                "Samples without series of their own, because there are too many objects.",
            ),
            rows: Mutex::default(),
            registry: registry.clone(),
        };
        this.collectors = make.into_collectors();
        for kind in [CORRIDOR, BUNDLE, POLICY] {
            this.reconciles(kind);
        }
        this
    }

    /// Every metric of the controllers, whether it has series yet or not.
    pub fn collectors(&self) -> impl Iterator<Item = &dyn Collector> {
        self.collectors.iter().map(AsRef::as_ref)
    }

    /// All series as they are now.
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        self.registry.gather()
    }

    /// The counter of reconciles of one kind.
    pub(crate) fn reconciles(&self, kind: &str) -> IntCounter {
        self.reconciles.with_label_values(&[kind])
    }

    /// Its counters exist from now on.
    pub(crate) fn corridor_added(&self, object: &Corridor) {
        if self.rows.lock().admit_corridor(&name_of(object), &BTreeSet::new()).is_none() {
            self.dropped.inc();
            return;
        }
        self.begin_corridor(object);
    }

    /// Counters exist before the first event: an alert does not see the rise of a series that begins with 1.
    fn begin_corridor(&self, object: &Corridor) {
        let ((namespace, name), kind) = (name_of(object), object.spec.corridor_type.to_string());
        self.corridors.allocations.with_label_values(&[&namespace, &name, &kind]);
        for reason in RECALIBRATION_REASONS {
            self.corridors.recalibrations.with_label_values(&[&*namespace, &*name, reason]);
        }
    }

    pub(crate) fn corridor_allocated(&self, object: &Corridor) {
        let (name, kind) = (name_of(object), object.spec.corridor_type.to_string());
        if !self.rows.lock().corridors.contains_key(&name) {
            self.dropped.inc();
            return;
        }
        self.corridors.allocations.with_label_values(&[&name.0, &name.1, &kind]).inc();
    }

    pub(crate) fn corridor_recalibrated(&self, object: &Corridor, reason: &str) {
        let (namespace, name) = name_of(object);
        self.corridors.recalibrations.with_label_values(&[&*namespace, &*name, reason]).inc();
    }

    pub(crate) fn corridor_sample(&self, object: &Corridor, sample: &CorridorTelemetry) {
        let name = name_of(object);
        let lambdas = || sample.lambdas.iter().map(|reading| reading.lambda_nm);
        let mut rows = self.rows.lock();
        // Mostly a path has the same wavelengths as before, in the same order.
        let is_known = |row: &CorridorRow| lambdas().eq(row.lambdas.keys().copied());
        if !rows.corridors.get(&name).is_some_and(is_known) {
            let Some(lost) = rows.admit_corridor(&name, &lambdas().collect()) else {
                self.dropped.inc();
                return;
            };
            self.forget_lambdas(&name, lost.iter());
            self.begin_corridor(object);
        }
        let Some(row) = rows.corridors.get_mut(&name) else { return };
        let series = &self.corridors;
        let labels = [name.0.as_str(), name.1.as_str()];
        let readings = [
            Some(sample.achievable_gbps),
            Some(object.spec.min_gbps.into()),
            sample.power_pj_per_bit,
        ];
        set_all(&mut row.gauges, series.per_corridor(), &labels, readings);
        let power_saved =
            row.power_saved.get_or_insert_with(|| series.power_saved.with_label_values(&labels));
        follow(power_saved, sample.power_saved_kj.unwrap_or_default());
        for reading in &sample.lambdas {
            let Some(gauges) = row.lambdas.get_mut(&reading.lambda_nm) else { continue };
            let readings = [
                Some(reading.throughput_gbps),
                reading.ber,
                reading.eye_margin_db,
                reading.bias_mv,
                reading.lambda_shift_nm,
            ];
            let is_known =
                gauges.iter().zip(&readings).all(|(it, value)| it.is_some() || value.is_none());
            // The label is a text of its own: made only when a series is.
            let lambda = if is_known { String::new() } else { reading.lambda_nm.to_string() };
            let labels = [name.0.as_str(), name.1.as_str(), lambda.as_str()];
            set_all(gauges, series.per_lambda(), &labels, readings);
        }
    }

    /// Removing a series that was never set fails, which is harmless.
    pub(crate) fn forget_corridor(&self, object: &Corridor) {
        let name = name_of(object);
        let mut rows = self.rows.lock();
        let row = rows.corridors.remove(&name);
        rows.count -= row.as_ref().map_or(0, |row| row.lambdas.len() + 1);
        self.forget_lambdas(&name, row.iter().flat_map(|row| row.lambdas.keys()));
        let series = &self.corridors;
        let (namespace, name) = (name.0.as_str(), name.1.as_str());
        for gauges in series.per_corridor() {
            let _ = gauges.remove_label_values(&[namespace, name]);
        }
        let _ = series.power_saved.remove_label_values(&[namespace, name]);
        let _ = self.refused.remove_label_values(&[namespace, CORRIDOR, name]);
        for reason in RECALIBRATION_REASONS {
            let _ = series.recalibrations.remove_label_values(&[namespace, name, reason]);
        }
        for kind in ["SiCorridor", "CarbonCorridor"] {
            let _ = series.allocations.remove_label_values(&[namespace, name, kind]);
        }
    }

    fn forget_lambdas<'a>(&self, name: &Name, lambdas: impl Iterator<Item = &'a u32>) {
        for lambda in lambdas {
            let lambda = lambda.to_string();
            for gauges in self.corridors.per_lambda() {
                let _ = gauges.remove_label_values(&[&name.0, &name.1, &lambda]);
            }
        }
    }

    /// Its counters exist from now on.
    pub(crate) fn bundle_added(&self, object: &MemoryBundle) {
        if let Some((namespace, name)) = self.listed_bundle(object) {
            self.bundles.allocations.with_label_values(&[&namespace, &name]);
        }
    }

    pub(crate) fn bundle_allocated(&self, object: &MemoryBundle) {
        let name = name_of(object);
        if !self.rows.lock().bundles.contains(&name) {
            self.dropped.inc();
            return;
        }
        self.bundles.allocations.with_label_values(&[&name.0, &name.1]).inc();
    }

    /// Its name, if there is room for its series.
    fn listed_bundle(&self, object: &MemoryBundle) -> Option<Name> {
        let name = name_of(object);
        let is_listed = self.rows.lock().admit_bundle(&name);
        if !is_listed {
            self.dropped.inc();
        }
        is_listed.then_some(name)
    }

    pub(crate) fn bundle_sample(&self, object: &MemoryBundle, sample: &BundleTelemetry) {
        let Some(name) = self.listed_bundle(object) else { return };
        let (series, labels) = (&self.bundles, [name.0.as_str(), name.1.as_str()]);
        #[expect(clippy::cast_precision_loss, reason = "amounts on a graph; bytes are < 2^53")]
        let (bytes, pages, violations) =
            (object.spec.bytes as f64, sample.moved_pages as f64, sample.qos_violations as f64);
        set(&series.bytes, &labels, Some(bytes));
        set(&series.achieved, &labels, Some(sample.achieved_gbs));
        set(&series.floor, &labels, Some(sample.floor_gbs.into()));
        set(&series.tail, &labels, sample.tail_p99_ms);
        raise(&series.moved_pages, &labels, pages);
        raise(&series.violations, &labels, violations);
    }

    pub(crate) fn forget_bundle(&self, object: &MemoryBundle) {
        let name = name_of(object);
        let mut rows = self.rows.lock();
        if rows.bundles.remove(&name) {
            rows.count -= 1;
        }
        let labels = [name.0.as_str(), name.1.as_str()];
        let _ = self.bundles.allocations.remove_label_values(&labels);
        let _ = self.refused.remove_label_values(&[labels[0], BUNDLE, labels[1]]);
        for gauges in self.bundles.gauges() {
            let _ = gauges.remove_label_values(&labels);
        }
        for totals in self.bundles.totals() {
            let _ = totals.remove_label_values(&labels);
        }
    }

    /// The controllers have stopped, and their readings are no longer kept up to date.
    pub(crate) fn forget_objects(&self) {
        *self.rows.lock() = Rows::default();
        let gauges = self.corridors.per_corridor().into_iter().chain(self.corridors.per_lambda());
        for gauges in gauges.chain(self.bundles.gauges()).chain([&self.refused]) {
            gauges.reset();
        }
        self.corridors.power_saved.reset();
        for totals in self.bundles.totals() {
            totals.reset();
        }
        // Objects that are deleted while no controller runs would leave their series behind.
        let counts = [&self.corridors.allocations, &self.corridors.recalibrations];
        for counts in counts.into_iter().chain([&self.bundles.allocations]) {
            counts.reset();
        }
    }
}

fn name_of<K: ResourceExt>(object: &K) -> Name {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Sets each gauge to its reading, and remembers the gauge.
fn set_all<const N: usize>(
    gauges: &mut [Option<Gauge>; N],
    series: [&GaugeVec; N],
    labels: &[&str],
    readings: [Option<f64>; N],
) {
    for ((gauge, series), reading) in gauges.iter_mut().zip(series).zip(readings) {
        if let Some(reading) = reading {
            gauge.get_or_insert_with(|| series.with_label_values(labels)).set(reading);
        }
    }
}

/// A missing reading leaves the last one.
fn set(gauges: &GaugeVec, labels: &[&str], value: Option<f64>) {
    if let Some(value) = value {
        gauges.with_label_values(labels).set(value);
    }
}

/// The counter follows the daemon's, and starts again when the daemon does.
fn raise(totals: &CounterVec, labels: &[&str], value: f64) {
    follow(&totals.with_label_values(labels), value);
}

fn follow(counter: &Counter, value: f64) {
    if value < counter.get() {
        counter.reset();
    }
    counter.inc_by(value - counter.get());
}

#[cfg(test)]
mod tests;
