//! What light does: pure functions of seed, path and time. Simulated; the magnitudes are plausible,
//! not measured.

use jiff::Timestamp;

use super::noise::Noise;
use super::records::CorridorRecord;
use crate::corrd::{
    AmbientProfile, CorridorMode, CorridorTelemetry, CorridorType, LambdaReading, LambdaTuning,
    PathSpec, PriorityClass,
};
use crate::limits::{LAMBDA_NM_MAX, LAMBDA_NM_MIN};
use crate::refusal::{Refusal, RefusalReason};

/// Light in vacuum, mm per ns.
const LIGHT_MM_PER_NS: f64 = 299.792_458;
/// Serialising, driving, detecting, deserialising.
const ENDPOINTS_NS: f64 = 5.0;
/// Aiming optics at both ends of a free-space path.
const OPTICS_NS: f64 = 2.0;
/// Buffers that hold what a paused sender has already sent.
const PAUSE_NS: f64 = 4.0;
/// A path whose reach is left to the daemon spans one board.
const REACH_MM_DEFAULT: u32 = 100;
/// What a path is tuned for when the request does not say.
const TARGET_BER_DEFAULT: f64 = 1e-12;
/// Below this the eye is closed.
const EYE_DB_MIN: f64 = 1.0;
/// HELIOPASS moves a wavelength in steps of this many nm.
const LAMBDA_STEP_NM: f64 = 0.02;
const DAY_S: f64 = 86_400.0;

/// What a medium can do.
struct Medium {
    gbps_per_lane: u32,
    group_index: f64,
    reach_mm_waveguide: u32,
    reach_mm_free_space: u32,
    lambda_nm_max: u32,
    pj_per_bit: f64,
    /// Shift of a ring's resonance with temperature.
    nm_per_celsius: f64,
}

fn medium(corridor_type: CorridorType) -> Medium {
    match corridor_type {
        CorridorType::SiCorridor => Medium {
            gbps_per_lane: 112,
            group_index: 4.2,
            reach_mm_waveguide: 10_000_000,
            reach_mm_free_space: 1_000_000,
            // Detectors go blind in the U band.
            lambda_nm_max: 1625,
            pj_per_bit: 0.9,
            nm_per_celsius: 0.07,
        },
        CorridorType::CarbonCorridor => Medium {
            gbps_per_lane: 224,
            group_index: 2.2,
            reach_mm_waveguide: 50_000_000,
            reach_mm_free_space: 2_000_000,
            lambda_nm_max: LAMBDA_NM_MAX,
            pj_per_bit: 0.6,
            nm_per_celsius: 0.02,
        },
    }
}

/// Temperature of a device, in degrees Celsius.
struct Ambient {
    mean_c: f64,
    /// Half of what lies between night and day.
    day_c: f64,
}

fn ambient(profile: AmbientProfile) -> Ambient {
    match profile {
        AmbientProfile::LabDefault => Ambient { mean_c: 45.0, day_c: 6.0 },
        AmbientProfile::ColdAisle => Ambient { mean_c: 32.0, day_c: 2.0 },
        AmbientProfile::HotAisle => Ambient { mean_c: 58.0, day_c: 5.0 },
        AmbientProfile::Outdoor => Ambient { mean_c: 40.0, day_c: 22.0 },
    }
}

/// What a path may carry beyond its floor, as part of the floor.
fn headroom_share(class: PriorityClass) -> f64 {
    match class {
        PriorityClass::Bronze => 0.03,
        PriorityClass::Silver => 0.06,
        PriorityClass::Gold => 0.12,
        PriorityClass::Platinum => 0.24,
    }
}

/// Refuses what no device of this kind could do, whatever is free.
pub(super) fn check_feasible(path: &PathSpec) -> Result<(), Refusal> {
    let medium = medium(path.corridor_type);
    let no = |reason, message: String| Err(Refusal::new(reason, message));
    let (reach, reach_max) = (reach_mm(path), reach_mm_max(path, &medium));
    if reach > reach_max {
        let message = format!("light reaches {reach_max} mm this way, {reach} mm were asked");
        return no(RefusalReason::Reach, message);
    }
    let latency = latency_ns(path);
    if path.latency_budget_ns.is_some_and(|budget| latency > f64::from(budget)) {
        let budget = path.latency_budget_ns.unwrap_or_default();
        let message = format!("the path takes {latency:.1} ns, the budget is {budget} ns");
        return no(RefusalReason::LatencyBudget, message);
    }
    let gbps_max = path.lanes * medium.gbps_per_lane;
    if path.min_gbps > gbps_max {
        let message = format!(
            "{} lanes carry at most {gbps_max} Gbps, {} were asked",
            path.lanes, path.min_gbps
        );
        return no(RefusalReason::Lanes, message);
    }
    let usable = LAMBDA_NM_MIN..=medium.lambda_nm_max;
    if let Some(lambda) = path.lambda_nm.iter().find(|lambda| !usable.contains(lambda)) {
        let message = format!("{lambda} nm is outside {} to {} nm", usable.start(), usable.end());
        return no(RefusalReason::Lambda, message);
    }
    Ok(())
}

fn reach_mm(path: &PathSpec) -> u32 {
    path.reach_mm.unwrap_or(REACH_MM_DEFAULT)
}

fn reach_mm_max(path: &PathSpec, medium: &Medium) -> u32 {
    match path.mode {
        CorridorMode::Waveguide => medium.reach_mm_waveguide,
        CorridorMode::FreeSpace => medium.reach_mm_free_space,
    }
}

/// Latency of a path as built.
pub(super) fn latency_ns(path: &PathSpec) -> f64 {
    let pause_ns = if path.qos.as_ref().is_some_and(|it| it.pfc) { PAUSE_NS } else { 0.0 };
    let (index, optics_ns) = match path.mode {
        CorridorMode::Waveguide => (medium(path.corridor_type).group_index, 0.0),
        CorridorMode::FreeSpace => (1.0, OPTICS_NS),
    };
    ENDPOINTS_NS + optics_ns + pause_ns + f64::from(reach_mm(path)) * index / LIGHT_MM_PER_NS
}

/// One sample of a path.
pub(super) fn sample(seed: u64, record: &CorridorRecord, now: Timestamp) -> CorridorTelemetry {
    let path = &record.path;
    let moment = Moment::of(seed, record, now);
    let bers: Vec<f64> = (0..).zip(&path.lambda_nm).map(|(i, _)| moment.ber(i)).collect();
    let worst = bers.iter().copied().fold(0.0, f64::max);
    let achievable = moment.achievable_gbps(worst);
    let load = 0.55 + 0.3 * moment.noise("load").at(moment.seconds, 60.0);
    let lambdas = (0..).zip(&path.lambda_nm).zip(&bers).map(|((index, &lambda_nm), &ber)| {
        let LambdaTuning { bias_mv, lambda_shift_nm, .. } = moment.tuning(index, lambda_nm);
        // At most 416 wavelengths: exact.
        #[allow(clippy::cast_precision_loss)]
        let throughput_gbps = milli(achievable * load / path.lambda_nm.len() as f64);
        let eye_margin_db = Some(milli(eye_db(ber)));
        let ber = Some(ber);
        LambdaReading { lambda_nm, throughput_gbps, ber, eye_margin_db, bias_mv, lambda_shift_nm }
    });
    let lambdas = lambdas.collect();
    let latency = record.forced.latency_ns.unwrap_or_else(|| latency_ns(path));
    CorridorTelemetry {
        corridor_id: record.id.clone(),
        owner: record.owner.clone(),
        sampled_at: now,
        achievable_gbps: achievable,
        min_gbps: path.min_gbps,
        ber: Some(worst),
        target_ber: Some(target_ber(path)),
        eye_margin: Some(if eye_db(worst) >= EYE_DB_MIN { "ok" } else { "fail" }.to_owned()),
        latency_ns: Some(milli(latency)),
        temp_c: Some(milli(moment.temp_c(moment.seconds))),
        power_pj_per_bit: Some(milli(moment.pj_per_bit())),
        power_saved_kj: Some(milli(moment.saved_kj(record))),
        drift: Some(moment.drift().to_owned()),
        lambdas,
    }
}

/// Where every wavelength stands.
pub(super) fn tunings(seed: u64, record: &CorridorRecord, now: Timestamp) -> Vec<LambdaTuning> {
    let moment = Moment::of(seed, record, now);
    (0..).zip(&record.path.lambda_nm).map(|(i, &lambda)| moment.tuning(i, lambda)).collect()
}

pub(super) fn target_ber(path: &PathSpec) -> f64 {
    let asked = path.recalibration.as_ref().and_then(|it| it.target_ber);
    asked.unwrap_or(TARGET_BER_DEFAULT)
}

/// One path at one time.
struct Moment<'a> {
    seed: u64,
    record: &'a CorridorRecord,
    medium: Medium,
    ambient: Ambient,
    seconds: f64,
    tuned_seconds: f64,
}

impl<'a> Moment<'a> {
    fn of(seed: u64, record: &'a CorridorRecord, now: Timestamp) -> Self {
        let medium = medium(record.path.corridor_type);
        let profile = record.path.recalibration.as_ref().and_then(|it| it.ambient_profile);
        let ambient = ambient(profile.unwrap_or_default());
        let (seconds, tuned_seconds) = (now.as_duration(), record.tuned_at.as_duration());
        let (seconds, tuned_seconds) = (seconds.as_secs_f64(), tuned_seconds.as_secs_f64());
        Self { seed, record, medium, ambient, seconds, tuned_seconds }
    }

    fn noise(&self, quantity: &str) -> Noise {
        Noise::new(self.seed, &self.record.id, quantity)
    }

    /// Warm by day, plus the neighbours' work. The device decides, so its paths move together.
    fn temp_c(&self, seconds: f64) -> f64 {
        let device = Noise::new(self.seed, self.record.device_id(), "temp");
        let day = (seconds / DAY_S + device.constant()) * std::f64::consts::TAU;
        self.ambient.mean_c
            + self.ambient.day_c * day.sin()
            + 4.0 * (device.at(seconds, 120.0) - 0.5)
    }

    /// How far a wavelength has wandered since it was tuned.
    fn wander_nm(&self) -> f64 {
        let warmer = self.temp_c(self.seconds) - self.temp_c(self.tuned_seconds);
        warmer * self.medium.nm_per_celsius
    }

    /// Hours since the path was tuned.
    fn age_h(&self) -> f64 {
        (self.seconds - self.tuned_seconds).max(0.0) / 3600.0
    }

    /// Bit error rate of the `index`-th wavelength. Unforced and young it stays below 1e-12.
    fn ber(&self, index: u32) -> f64 {
        let part = self.noise("ber").part(index);
        let reach = f64::from(reach_mm(&self.record.path));
        let reach = reach / f64::from(reach_mm_max(&self.record.path, &self.medium));
        let built = -14.0 + 0.6 * part.constant() + 0.4 * reach;
        let noise = 0.4 * part.at(self.seconds, 45.0);
        // What HELIOPASS follows in steps hurts little; age hurts more, up to a limit.
        let detuned = 0.2 * (self.wander_nm().abs() / LAMBDA_STEP_NM).min(1.0);
        let aged = (0.01 * self.age_h()).min(0.3);
        let exponent = built + noise + detuned + aged + self.record.forced.ber_drift_decades;
        // From one error a century to pure chance.
        10_f64.powf(exponent.clamp(-18.0, -0.302))
    }

    /// Healthy paths carry a little more than their floor; errors cost correction, then everything.
    fn achievable_gbps(&self, worst_ber: f64) -> f64 {
        if let Some(forced) = self.record.forced.achievable_gbps {
            return milli(forced.max(0.0));
        }
        let path = &self.record.path;
        let floor = f64::from(path.min_gbps);
        let line = f64::from(path.lanes) * f64::from(self.medium.gbps_per_lane);
        let class = path.qos.as_ref().and_then(|it| it.priority).unwrap_or_default();
        let headroom = (floor * headroom_share(class)).min(line - floor).max(0.0);
        let healthy = floor + headroom * (0.5 + 0.5 * self.noise("gbps").at(self.seconds, 90.0));
        let decades_too_many = (worst_ber.log10() + 8.0).max(0.0);
        milli(healthy * (1.0 - 0.15 * decades_too_many).max(0.0))
    }

    fn tuning(&self, index: u32, lambda_nm: u32) -> LambdaTuning {
        let steps = (self.wander_nm() / LAMBDA_STEP_NM).round();
        let own = self.noise("bias").part(index).constant();
        LambdaTuning {
            lambda_nm,
            bias_mv: Some(milli(900.0 + 80.0 * own - 12.0 * steps)),
            lambda_shift_nm: Some(milli(steps * LAMBDA_STEP_NM)),
        }
    }

    fn pj_per_bit(&self) -> f64 {
        let warm = self.temp_c(self.seconds) - ambient(AmbientProfile::default()).mean_c;
        self.medium.pj_per_bit * (1.0 + 0.008 * warm) + 0.02 * self.noise("power").constant()
    }

    /// Each lane saves a fifth of a watt against fixed heaters.
    fn saved_kj(&self, record: &CorridorRecord) -> f64 {
        let seconds = self.seconds - record.created_at.as_duration().as_secs_f64();
        seconds.max(0.0) * 0.2 * f64::from(record.path.lanes) / 1000.0
    }

    fn drift(&self) -> &'static str {
        let forced = self.record.forced.ber_drift_decades;
        match (self.wander_nm().abs(), forced) {
            (_, forced) if forced >= 2.0 => "high",
            (wander, forced) if wander > 0.5 || forced > 0.5 => "medium",
            _ => "low",
        }
    }
}

fn eye_db(ber: f64) -> f64 {
    (1.0 + 0.6 * (-ber.log10() - 9.0)).clamp(0.0, 12.0)
}

fn milli(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
