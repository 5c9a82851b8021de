//! Requests to memqosd.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::devices::check_ticket;
use super::{Allocated, Kind, Ledger, Plan, Record, Terms, malformed};
use crate::attestd::DeviceKind;
use crate::identity::{IdempotencyKey, Owner};
use crate::limits::{BYTES_MAX, FLOOR_GBS_MAX, NAME_LENGTH_MAX};
use crate::memqosd::{
    BandwidthChange, Bundle, BundleRequest, BundleSpec, LatencyClassChange, LatencyClassChanged,
};
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::config::later;
use crate::simulated::memory;
use crate::simulated::records::{BundleRecord, Change, Counters, ForcedBundle};
use crate::units;

impl Record for BundleRecord {
    const KIND: Kind = Kind::Bundle;
    const NAME: &'static str = "bundle";
    const LIST: &'static str = "bundles";
    type Request = BundleRequest;
    type Shown = Bundle;
    type Forced = ForcedBundle;

    fn all(ledger: &Ledger) -> &BTreeMap<String, Self> {
        &ledger.bundles
    }

    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn plan(
        ledger: &Ledger,
        terms: &Terms,
        now: Timestamp,
        key: &IdempotencyKey,
        ask: &BundleRequest,
    ) -> Plan<Allocated<Self>> {
        check_memory(&ask.memory)?;
        if let Some(before) = ledger.find_repeated::<Self>(key, &ask.owner, ask)? {
            return Ok((vec![], Allocated::Before(before.clone())));
        }
        let device = ledger.device_for(DeviceKind::Memory, ask.memory.device_id.as_deref())?;
        check_ticket(terms, now, &ask.owner, device, ask.ticket.as_deref())?;
        ledger.check_fits(terms, None, &ask.memory)?;
        let number = ledger.free_bundle_number();
        let record = Self {
            handle: handle(number),
            owner: ask.owner.clone(),
            key: key.clone(),
            asked: ask.memory.clone(),
            memory: BundleSpec { device_id: Some(device.to_owned()), ..ask.memory.clone() },
            created_at: now,
            lease_expires_at: later(now, terms.lease_ttl),
            lapsed: false,
            moved_pages: 0,
            forced: ForcedBundle::default(),
        };
        let counters = Counters { bundle: number + 1, ..ledger.counters };
        let changes = vec![Change::Counters(counters), record.clone().put()];
        Ok((changes, Allocated::Now(record)))
    }

    /// A lapsed bundle has to get its bandwidth back, which can be refused.
    fn renewed(&self, ledger: &Ledger, terms: &Terms, end: Timestamp) -> Result<Self, Refusal> {
        if self.lapsed {
            ledger.check_fits(terms, Some(self), &self.memory)?;
        }
        Ok(Self { lease_expires_at: end, lapsed: false, ..self.clone() })
    }

    fn is_same_wish(&self, ask: &BundleRequest) -> bool {
        // The daemon chose the device, and the caller may still leave it open.
        let is_open = self.asked.device_id.is_none()
            && ask.memory == BundleSpec { device_id: None, ..self.memory.clone() };
        let is_same = is_open || ask.memory == self.asked || ask.memory == self.memory;
        is_same && ask.owner == self.owner
    }

    fn put(self) -> Change {
        Change::PutBundle(Box::new(self))
    }

    fn drop(handle: String) -> Change {
        Change::DropBundle(handle)
    }

    fn shown(self, terms: &Terms, now: Timestamp) -> Bundle {
        let achieved_gbs = memory::achieved_gbs(terms.seed, &self, now);
        let Self { handle, owner, key, memory, created_at, lapsed, .. } = self;
        Bundle {
            ffm_handle: handle,
            owner,
            idempotency_key: key,
            memory,
            achieved_gbs,
            moved_pages: self.moved_pages,
            policy_lease_ttl_s: terms.lease_ttl.as_secs(),
            lease_expires_at: self.lease_expires_at,
            lapsed,
            created_at,
        }
    }

    fn forced(self, forced: ForcedBundle) -> Self {
        Self { forced, ..self }
    }
}

impl Ledger {
    /// After a loss of state the count begins again, while durable bundles keep their handles.
    fn free_bundle_number(&self) -> u64 {
        let mut number = self.counters.bundle;
        while self.bundles.contains_key(&handle(number)) {
            number += 1;
        }
        number
    }

    /// Whether the tier can ever, and can now, give what `memory` asks instead of `before`.
    fn check_fits(
        &self,
        terms: &Terms,
        before: Option<&BundleRecord>,
        memory: &BundleSpec,
    ) -> Result<(), Refusal> {
        let tier = terms.pools.tiers[memory.latency_class as usize];
        if u64::from(memory.floor_gbs) > tier.gbs {
            let class = memory.latency_class.as_str();
            let message = format!("{class} has {} GB/s in all", tier.gbs);
            return Err(Refusal::new(RefusalReason::Bandwidth, message));
        }
        let mut usage = self.usage.clone();
        if let Some(before) = before {
            usage.return_memory(&before.memory, before.lapsed);
        }
        usage.take_memory(memory, false);
        usage.check_tier(memory.latency_class, &terms.pools)
    }

    pub(in crate::simulated) fn plan_bandwidth(
        &self,
        terms: &Terms,
        handle: &str,
        caller: Option<&Owner>,
        change: BandwidthChange,
    ) -> Plan<BundleRecord> {
        let record = self.find_own::<BundleRecord>(handle, caller)?;
        let mut changed = record.clone();
        changed.memory.floor_gbs = change.floor_gbs;
        check_memory(&changed.memory)?;
        check_not_lapsed(record)?;
        self.check_fits(terms, Some(record), &changed.memory)?;
        Ok((vec![changed.clone().put()], changed))
    }

    /// Moves every page to the other tier.
    pub(in crate::simulated) fn plan_latency_class(
        &self,
        terms: &Terms,
        handle: &str,
        caller: Option<&Owner>,
        change: LatencyClassChange,
    ) -> Plan<LatencyClassChanged> {
        let record = self.find_own::<BundleRecord>(handle, caller)?;
        let LatencyClassChange { latency_class } = change;
        if record.memory.latency_class == latency_class {
            return Ok((vec![], LatencyClassChanged { latency_class, moved_pages: 0 }));
        }
        let mut changed = record.clone();
        changed.memory.latency_class = latency_class;
        check_not_lapsed(record)?;
        self.check_fits(terms, Some(record), &changed.memory)?;
        let moved_pages = record.memory.bytes.div_ceil(memory::PAGE_BYTES);
        changed.moved_pages += moved_pages;
        let answer = LatencyClassChanged { latency_class, moved_pages };
        Ok((vec![changed.put()], answer))
    }
}

fn handle(number: u64) -> String {
    format!("ffm-{number:06x}")
}

fn check_not_lapsed(record: &BundleRecord) -> Result<(), Refusal> {
    if record.lapsed {
        let message = "the lease of the bundle ran out: renew it first";
        return Err(Refusal::new(RefusalReason::PoolBandwidth, message));
    }
    Ok(())
}

/// The ranges of the contract.
fn check_memory(memory: &BundleSpec) -> Result<(), Refusal> {
    if !(1..=BYTES_MAX).contains(&memory.bytes) {
        let most = units::binary(BYTES_MAX);
        return Err(malformed(format!("bytes must be 1 to {most}, is {}", memory.bytes)));
    }
    if !(1..=FLOOR_GBS_MAX).contains(&memory.floor_gbs) {
        let floor = memory.floor_gbs;
        return Err(malformed(format!("floor_GBs must be 1 to {FLOOR_GBS_MAX}, is {floor}")));
    }
    let device = memory.device_id.as_deref().unwrap_or_default();
    if memory.security_domain.len() > NAME_LENGTH_MAX || device.len() > NAME_LENGTH_MAX {
        return Err(malformed(format!("a name has more than {NAME_LENGTH_MAX} characters")));
    }
    Ok(())
}
