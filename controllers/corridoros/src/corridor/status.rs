//! Pure: the health of a path, and the status of its Corridor.

use std::time::Duration;

use crds::condition::{self, not_ready};
use crds::{CorridorStatus, CorridorTelemetry as Readings};
use daemons::corrd::{Corridor, CorridorTelemetry, RecalibrationRequest};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Corridors;
use super::plan::PathChange;
use crate::lifecycle::{
    Damping, DriverFields, Health, SharedStatus, StatusBase, StatusStep, Use, reading_moved,
};
use crate::settings::Settings;

/// A degraded path has recovered only below this part of its target. The band in between changes nothing.
const BER_RECOVERED: f64 = 0.5;
/// Readings are written again when they moved by more than this: wide enough for the noise and the daily course of a
/// healthy path, because the metrics have every reading.
const BANDWIDTH_DEADBAND: f64 = 0.05;
const BER_DEADBAND_FACTOR: f64 = 10.0;
const TEMPERATURE_DEADBAND_C: f64 = 5.0;
const POWER_DEADBAND: f64 = 0.1;

/// What is remembered to judge a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Signals {
    ber: BerSignals,
    floor: Damping,
    latency: Damping,
}

/// What is remembered to judge a bit error rate.
#[derive(Clone, Debug, Default, PartialEq)]
struct BerSignals {
    /// Whether the bit error rate counts as too high. `None`: not judged since the start.
    is_bad: Option<bool>,
    /// Since when it has been on the other side without a break.
    turned_at: Option<Timestamp>,
    recalibrated_at: Option<Timestamp>,
    /// When the daemon took the sample that was judged last.
    judged_sample: Option<Timestamp>,
    /// The sample that led to a recalibration, which shows nothing of its effect.
    outdated_sample: Option<Timestamp>,
}

impl Signals {
    pub(super) fn recalibrated(&mut self, now: Timestamp) {
        self.ber.recalibrated_at = Some(now);
        self.ber.outdated_sample = self.ber.judged_sample;
    }
}

impl StatusStep for Corridors {
    fn shared(status: &CorridorStatus) -> SharedStatus<'_> {
        SharedStatus {
            phase: status.phase,
            generation: status.observed_generation,
            handle: status.corridor_id.as_deref(),
            size: None,
            floor: status.floor_gbps,
            measured: status.achievable_gbps,
            has_reading: status.telemetry.is_some(),
            attestation_expires_at: status.attestation_expires_at.as_ref(),
            used: Use { count: status.in_use, pods: &status.in_use_by },
            conditions: &status.conditions,
        }
    }

    fn driver_fields(status: &mut CorridorStatus) -> DriverFields<'_> {
        let CorridorStatus { in_use, in_use_by, conditions, .. } = status;
        DriverFields { in_use, in_use_by, conditions }
    }

    fn floor(object: &crds::Corridor, _: &CorridorStatus) -> f64 {
        f64::from(object.spec.min_gbps)
    }

    fn readings_moved(old: &CorridorStatus, next: &CorridorStatus, floor: f64) -> bool {
        let empty = Readings::default();
        let old_readings = old.telemetry.as_ref().unwrap_or(&empty);
        let new = next.telemetry.as_ref().unwrap_or(&empty);
        let gbps = |old: f64, next: f64| (next - old).abs() > BANDWIDTH_DEADBAND * floor;
        let ber = |old: f64, next: f64| {
            next > old * BER_DEADBAND_FACTOR || next * BER_DEADBAND_FACTOR < old
        };
        let power = |old: f64, next: f64| (next - old).abs() > POWER_DEADBAND * old.abs();
        let temperature = |old: f64, next: f64| (next - old).abs() > TEMPERATURE_DEADBAND_C;
        reading_moved(old.achievable_gbps, next.achievable_gbps, gbps)
            || reading_moved(old_readings.ber, new.ber, ber)
            || reading_moved(old_readings.temp_c, new.temp_c, temperature)
            || reading_moved(old_readings.power_pj_per_bit, new.power_pj_per_bit, power)
            || (new.drift.is_some() && old_readings.drift != new.drift)
    }

    /// Samples without a floor count as current.
    fn is_current(allocation: &Corridor, sample: &CorridorTelemetry) -> bool {
        sample.min_gbps == 0 || sample.min_gbps == allocation.path.min_gbps
    }

    fn has_reading(object: &crds::Corridor) -> bool {
        object.status.as_ref().is_some_and(|it| it.telemetry.is_some())
    }

    fn judge(
        object: &crds::Corridor,
        allocation: &Corridor,
        sample: Option<&CorridorTelemetry>,
        signals: &mut Signals,
        settings: &Settings,
        now: Timestamp,
    ) -> Health<PathChange> {
        let achievable = sample.map_or(allocation.achievable_gbps, |it| it.achievable_gbps);
        // The lower one: a raised floor that is not allocated yet is not missed.
        let floor = allocation.path.min_gbps.min(object.spec.min_gbps);
        let latency = sample.map_or(allocation.latency_ns, |it| it.latency_ns);
        let (ber_again, remedy) = judge_ber(object, sample, &mut signals.ber, settings, now);
        let (id, dwell) = (allocation.corridor_id.as_str(), settings.floor_dwell);
        let is_below = achievable < f64::from(floor);
        // Floor and latency are damped independently, so that the reason does not alternate between them either.
        let of_floor = signals.floor.judge((id, floor), is_below, dwell, now);
        let of_latency = latency.zip(object.spec.latency_budget_ns).map(|(latency, budget)| {
            let is_over = latency > f64::from(budget);
            let state = signals.latency.judge((id, budget), is_over, dwell, now);
            (state, latency, budget)
        });
        let is_bad = (signals.ber.is_bad == Some(true))
            .then(|| (not_ready::BER_ABOVE_TARGET, ber_fault(object, sample)));
        let fault = of_floor
            .fault(not_ready::BELOW_FLOOR, || format!("{achievable} of {floor} Gbps"))
            .or_else(|| {
                let (state, latency, budget) = of_latency.as_ref()?;
                let figures = || format!("{latency} ns, the budget is {budget} ns");
                state.fault(not_ready::LATENCY_OVER_BUDGET, figures)
            })
            .or(is_bad);
        let latency_again = of_latency.and_then(|(state, ..)| state.recheck_after());
        let recheck_after =
            [ber_again, of_floor.recheck_after(), latency_again].into_iter().flatten().min();
        Health { fault, remedy, recheck_after }
    }

    fn change_requested(signals: &mut Signals, change: &PathChange, now: Timestamp) {
        if matches!(change, PathChange::Recalibrate(_)) {
            signals.recalibrated(now);
        }
    }

    fn status(
        allocation: Option<&Corridor>,
        sample: Option<&CorridorTelemetry>,
        base: StatusBase,
    ) -> CorridorStatus {
        let StatusBase { phase, generation, conditions, attestation_expires_at } = base;
        let sample = sample.filter(|_| allocation.is_some());
        CorridorStatus {
            phase: Some(phase),
            observed_generation: Some(generation),
            corridor_id: allocation.map(|it| it.corridor_id.clone()),
            achievable_gbps: sample
                .map(|it| it.achievable_gbps)
                .or(allocation.map(|it| it.achievable_gbps)),
            floor_gbps: allocation.map(|it| f64::from(it.path.min_gbps)),
            telemetry: sample.map(|it| Readings {
                ber: it.ber,
                eye_margin: it.eye_margin.clone(),
                temp_c: it.temp_c,
                power_pj_per_bit: it.power_pj_per_bit,
                drift: it.drift.clone(),
            }),
            attestation_expires_at: attestation_expires_at.map(Time),
            // Written by the driver.
            in_use: None,
            in_use_by: Vec::new(),
            conditions,
        }
    }

    fn status_unknown(object: &crds::Corridor, base: StatusBase) -> CorridorStatus {
        let old = object.status.clone().unwrap_or_default();
        CorridorStatus {
            corridor_id: old.corridor_id,
            achievable_gbps: old.achievable_gbps,
            floor_gbps: old.floor_gbps,
            telemetry: old.telemetry,
            ..Self::status(None, None, base)
        }
    }
}

/// A bit error rate counts as too high, or as recovered, only after it has stayed so, because light jitters. HELIOPASS is
/// asked at half of that time: a path that can be tuned in time never degrades.
fn judge_ber(
    object: &crds::Corridor,
    sample: Option<&CorridorTelemetry>,
    signals: &mut BerSignals,
    settings: &Settings,
    now: Timestamp,
) -> (Option<Duration>, Option<PathChange>) {
    // After a start the status shows how it was judged last.
    let is_bad = *signals.is_bad.get_or_insert_with(|| was_bad(object));
    // A missing reading is neither good nor bad; nor is one from before the last tuning.
    let Some(sample) = sample else { return (None, None) };
    let Some(target) = target_ber(object, sample) else {
        *signals = BerSignals { is_bad: Some(false), ..BerSignals::default() };
        return (None, None);
    };
    signals.judged_sample = Some(sample.sampled_at);
    let Some(ber) = sample.ber.filter(|_| signals.outdated_sample != Some(sample.sampled_at))
    else {
        return (None, None);
    };
    let is_turned = if is_bad { ber < target * BER_RECOVERED } else { ber > target };
    if !is_turned {
        signals.turned_at = None;
        return (None, is_bad.then(|| remedy(signals, settings, now)).flatten());
    }
    let since = *signals.turned_at.get_or_insert(now);
    let lasted = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    if lasted >= settings.ber_dwell {
        (signals.is_bad, signals.turned_at) = (Some(!is_bad), None);
        return (None, None);
    }
    let half = settings.ber_dwell / 2;
    if !is_bad && lasted >= half {
        return (Some(settings.ber_dwell.saturating_sub(lasted)), remedy(signals, settings, now));
    }
    let next = if is_bad || lasted >= half { settings.ber_dwell } else { half };
    (Some(next.saturating_sub(lasted)), None)
}

/// That of the spec, else the daemon's own.
fn target_ber(object: &crds::Corridor, sample: &CorridorTelemetry) -> Option<f64> {
    let asked = object.spec.recalibration.as_ref().and_then(|it| it.target_ber);
    asked.or(sample.target_ber)
}

fn ber_fault(object: &crds::Corridor, sample: Option<&CorridorTelemetry>) -> String {
    let figures = sample.and_then(|it| Some((it.ber?, target_ber(object, it)?)));
    match figures {
        Some((ber, target)) => {
            format!("the bit error rate of {ber:.1e} stays above its target of {target:.1e}")
        }
        None => "the bit error rate stays above its target".to_owned(),
    }
}

fn remedy(signals: &BerSignals, settings: &Settings, now: Timestamp) -> Option<PathChange> {
    let pause = |at: Timestamp| Duration::try_from(now.duration_since(at)).unwrap_or_default();
    if signals.recalibrated_at.is_some_and(|at| pause(at) < settings.recalibration_interval) {
        return None;
    }
    let reason = Some("ber_drift".to_owned());
    Some(PathChange::Recalibrate(RecalibrationRequest { reason, ..Default::default() }))
}

fn was_bad(object: &crds::Corridor) -> bool {
    let conditions = object.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    condition::find(conditions, condition::READY)
        .is_some_and(|it| it.reason == not_ready::BER_ABOVE_TARGET)
}

#[cfg(test)]
mod tests;
