//! Every series of Corridors and MemoryBundles: to add one, add its line here and set it.

use controller_runtime::SeriesMaker;
use prometheus::{CounterVec, GaugeVec, IntCounterVec};

const CORRIDOR: &[&str] = &["namespace", "corridor"];
const LAMBDA: &[&str] = &["namespace", "corridor", "lambda"];
/// Of allocations.
const MADE: &str =
    "Allocations made since this leader looks after the object. 0 when it is first seen.";

const BUNDLE: &[&str] = &["namespace", "bundle"];

pub(super) struct CorridorSeries {
    pub allocations: IntCounterVec,
    pub achievable: GaugeVec,
    pub min: GaugeVec,
    pub throughput: GaugeVec,
    pub power: GaugeVec,
    pub ber: GaugeVec,
    pub eye: GaugeVec,
    pub recalibrations: IntCounterVec,
    pub bias: GaugeVec,
    pub lambda_shift: GaugeVec,
    pub power_saved: CounterVec,
}

impl CorridorSeries {
    pub fn new(make: &SeriesMaker<'_>) -> Self {
        let (typed, tuned) =
            (&["namespace", "corridor", "type"], &["namespace", "corridor", "reason"]);
        Self {
            allocations: make.counts("corridor_allocations_total", MADE, typed),
            achievable: make.gauges(
                "corridor_achievable_gbps",
                "Bandwidth that the path can carry now, as corrd measures it, in Gbps.",
                CORRIDOR,
            ),
            min: make.gauges(
                "corridor_min_gbps",
                "The floor that was asked for, in Gbps.",
                CORRIDOR,
            ),
            throughput: make.gauges(
                "corridor_throughput_gbps",
                "Throughput of a wavelength, in Gbps.",
                LAMBDA,
            ),
            power: make.gauges("corridor_power_pj_per_bit", "Energy per bit, in pJ.", CORRIDOR),
            ber: make.gauges("corridor_ber", "Bit error rate of a wavelength.", LAMBDA),
            eye: make.gauges("corridor_eye_margin", "Eye margin of a wavelength, in dB.", LAMBDA),
            recalibrations: make.counts(
                "corridor_recalibrations_total",
                "Recalibrations by HELIOPASS, by reason: ber_drift, spec_change.",
                tuned,
            ),
            bias: make.gauges("heliopass_bias_mv", "Bias of a wavelength, in mV.", LAMBDA),
            lambda_shift: make.gauges(
                "heliopass_lambda_shift_nm",
                "How far a wavelength was moved, in nm.",
                LAMBDA,
            ),
            power_saved: make.totals(
                "heliopass_power_saved_kj_total",
                "Energy saved by tuning, in kJ.",
                CORRIDOR,
            ),
        }
    }

    pub fn per_lambda(&self) -> [&GaugeVec; 5] {
        [&self.throughput, &self.ber, &self.eye, &self.bias, &self.lambda_shift]
    }

    pub fn per_corridor(&self) -> [&GaugeVec; 3] {
        [&self.achievable, &self.min, &self.power]
    }
}

pub(super) struct BundleSeries {
    pub allocations: IntCounterVec,
    pub bytes: GaugeVec,
    pub achieved: GaugeVec,
    pub floor: GaugeVec,
    pub moved_pages: CounterVec,
    pub tail: GaugeVec,
    pub violations: CounterVec,
}

impl BundleSeries {
    pub fn new(make: &SeriesMaker<'_>) -> Self {
        Self {
            allocations: make.counts("ffm_allocations_total", MADE, BUNDLE),
            bytes: make.gauges("ffm_allocation_bytes", "Size of a bundle, in bytes.", BUNDLE),
            achieved: make.gauges("ffm_achieved_gbs", "Bandwidth, in GB/s.", BUNDLE),
            floor: make.gauges(
                "ffm_bandwidth_floor_gbs",
                "The floor that holds now, its schedule included, in GB/s.",
                BUNDLE,
            ),
            moved_pages: make.totals("ffm_moved_pages_total", "Pages moved between tiers.", BUNDLE),
            tail: make.gauges(
                "ffm_tail_p99_ms",
                "99th percentile of access latency, in ms.",
                BUNDLE,
            ),
            violations: make.totals(
                "ffm_qos_violations_total",
                "How often the bandwidth fell below its floor.",
                BUNDLE,
            ),
        }
    }

    pub fn gauges(&self) -> [&GaugeVec; 4] {
        [&self.bytes, &self.achieved, &self.floor, &self.tail]
    }

    pub fn totals(&self) -> [&CounterVec; 2] {
        [&self.moved_pages, &self.violations]
    }
}
