//! Requests to corrd.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::devices::check_ticket;
use super::{Allocated, Kind, Ledger, Plan, Record, Terms, malformed};
use crate::attestd::DeviceKind;
use crate::corrd::{
    Corridor, CorridorChange, CorridorRequest, PathSpec, RecalibrationRequest, RecalibrationResult,
};
use crate::identity::{IdempotencyKey, Owner};
use crate::limits::{
    LAMBDA_NM_MAX, LAMBDA_NM_MIN, LANES_MAX, LATENCY_BUDGET_NS_MAX, MIN_GBPS_MAX, NAME_LENGTH_MAX,
    REACH_MM_MAX,
};
use crate::refusal::Refusal;
use crate::simulated::config::later;
use crate::simulated::photonics;
use crate::simulated::records::{Change, CorridorRecord, Counters, ForcedCorridor};

impl Record for CorridorRecord {
    const KIND: Kind = Kind::Corridor;
    const NAME: &'static str = "corridor";
    const LIST: &'static str = "corridors";
    type Request = CorridorRequest;
    type Shown = Corridor;
    type Forced = ForcedCorridor;

    fn all(ledger: &Ledger) -> &BTreeMap<String, Self> {
        &ledger.corridors
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn plan(
        ledger: &Ledger,
        terms: &Terms,
        now: Timestamp,
        key: &IdempotencyKey,
        ask: &CorridorRequest,
    ) -> Plan<Allocated<Self>> {
        check_path(&ask.path)?;
        if let Some(before) = ledger.find_repeated::<Self>(key, &ask.owner, ask)? {
            return Ok((vec![], Allocated::Before(before.clone())));
        }
        let asked_device = ask.path.device_id.as_deref();
        let device = ledger.device_for(DeviceKind::Photonic, asked_device)?;
        check_ticket(terms, now, &ask.owner, device, ask.ticket.as_deref())?;
        photonics::check_feasible(&ask.path)?;
        let mut usage = ledger.usage.clone();
        usage.take_path(&ask.path);
        usage.check_paths(&terms.pools)?;
        let record = Self {
            id: format!("cor-{:06x}", ledger.counters.corridor),
            owner: ask.owner.clone(),
            key: key.clone(),
            asked: ask.path.clone(),
            path: PathSpec { device_id: Some(device.to_owned()), ..ask.path.clone() },
            created_at: now,
            lease_expires_at: later(now, terms.lease_ttl),
            tuned_at: now,
            forced: ForcedCorridor::default(),
        };
        let counters = Counters { corridor: ledger.counters.corridor + 1, ..ledger.counters };
        let changes = vec![Change::Counters(counters), record.clone().put()];
        Ok((changes, Allocated::Now(record)))
    }

    fn renewed(&self, _: &Ledger, _: &Terms, end: Timestamp) -> Result<Self, Refusal> {
        Ok(Self { lease_expires_at: end, ..self.clone() })
    }

    fn is_same_wish(&self, ask: &CorridorRequest) -> bool {
        // The daemon chose the device, and the caller may still leave it open.
        let is_open = self.asked.device_id.is_none()
            && ask.path == PathSpec { device_id: None, ..self.path.clone() };
        let is_same = is_open || ask.path == self.asked || ask.path == self.path;
        is_same && ask.owner == self.owner
    }

    fn put(self) -> Change {
        Change::PutCorridor(Box::new(self))
    }

    fn drop(id: String) -> Change {
        Change::DropCorridor(id)
    }

    fn shown(self, terms: &Terms, now: Timestamp) -> Corridor {
        let achievable_gbps = photonics::sample(terms.seed, &self, now).achievable_gbps;
        let latency_ns = Some(photonics::latency_ns(&self.path));
        let Self { id, owner, key, path, created_at, lease_expires_at, .. } = self;
        Corridor {
            corridor_id: id,
            owner,
            idempotency_key: key,
            path,
            achievable_gbps,
            latency_ns,
            policy_lease_ttl_s: terms.lease_ttl.as_secs(),
            lease_expires_at,
            created_at,
        }
    }

    fn forced(self, forced: ForcedCorridor) -> Self {
        Self { forced, ..self }
    }
}

impl Ledger {
    pub(in crate::simulated) fn plan_corridor_change(
        &self,
        terms: &Terms,
        id: &str,
        caller: Option<&Owner>,
        change: &CorridorChange,
    ) -> Plan<CorridorRecord> {
        let record = self.find_own::<CorridorRecord>(id, caller)?;
        let mut changed = record.clone();
        let CorridorChange { min_gbps, qos, recalibration } = change.clone();
        changed.path.min_gbps = min_gbps.unwrap_or(record.path.min_gbps);
        changed.path.qos = qos.or(changed.path.qos);
        changed.path.recalibration = recalibration.or(changed.path.recalibration);
        check_path(&changed.path)?;
        photonics::check_feasible(&changed.path)?;
        let mut usage = self.usage.clone();
        usage.return_path(&record.path);
        usage.take_path(&changed.path);
        usage.check_paths(&terms.pools)?;
        Ok((vec![changed.clone().put()], changed))
    }

    pub(in crate::simulated) fn plan_recalibration(
        &self,
        terms: &Terms,
        now: Timestamp,
        id: &str,
        caller: Option<&Owner>,
        ask: &RecalibrationRequest,
    ) -> Plan<RecalibrationResult> {
        let record = self.find_own::<CorridorRecord>(id, caller)?;
        check_target(ask.target_ber)?;
        let mut tuned = record.clone();
        if !record.forced.recalibration_fails {
            tuned.tuned_at = now;
            tuned.forced.ber_drift_decades = 0.0;
        }
        let target = ask.target_ber.unwrap_or_else(|| photonics::target_ber(&record.path));
        let ber = photonics::sample(terms.seed, &tuned, now).ber;
        let result = RecalibrationResult {
            corridor_id: id.to_owned(),
            converged: ber.is_some_and(|ber| ber <= target),
            ber,
            lambdas: photonics::tunings(terms.seed, &tuned, now),
        };
        Ok((vec![tuned.put()], result))
    }
}

/// The ranges of the contract.
fn check_path(path: &PathSpec) -> Result<(), Refusal> {
    let within = |name: &str, value: u32, max: u32| match value {
        value if (1..=max).contains(&value) => Ok(()),
        value => Err(malformed(format!("{name} must be 1 to {max}, is {value}"))),
    };
    within("lanes", path.lanes, LANES_MAX)?;
    within("min_gbps", path.min_gbps, MIN_GBPS_MAX)?;
    within("latency_budget_ns", path.latency_budget_ns.unwrap_or(1), LATENCY_BUDGET_NS_MAX)?;
    within("reach_mm", path.reach_mm.unwrap_or(1), REACH_MM_MAX)?;
    let distinct: BTreeSet<&u32> = path.lambda_nm.iter().collect();
    if distinct.is_empty() || distinct.len() != path.lambda_nm.len() {
        return Err(malformed("lambda_nm must name at least one wavelength, and none twice"));
    }
    if path.lambda_nm.len() > usize::try_from(path.lanes).unwrap_or(usize::MAX) {
        return Err(malformed("lambda_nm must not name more wavelengths than there are lanes"));
    }
    let band = LAMBDA_NM_MIN..=LAMBDA_NM_MAX;
    if let Some(lambda) = path.lambda_nm.iter().find(|lambda| !band.contains(lambda)) {
        return Err(malformed(format!("lambda_nm must be 1260 to 1675, {lambda} is not")));
    }
    let recalibration = path.recalibration.as_ref();
    check_target(recalibration.and_then(|it| it.target_ber))?;
    if path.device_id.as_ref().is_some_and(|name| name.len() > NAME_LENGTH_MAX) {
        return Err(malformed(format!("device_id has more than {NAME_LENGTH_MAX} characters")));
    }
    Ok(())
}

fn check_target(target_ber: Option<f64>) -> Result<(), Refusal> {
    match target_ber {
        Some(target) if !(target > 0.0 && target < 0.5) => {
            Err(malformed(format!("target_ber must be more than 0 and less than 0.5, is {target}")))
        }
        _ => Ok(()),
    }
}
