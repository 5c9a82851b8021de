//! Requests to memqosd.

use jiff::Timestamp;

use super::devices::check_ticket;
use super::{Allocated, Kind, Ledger, Plan, Terms, check_owner, malformed, not_found};
use crate::attestd::DeviceKind;
use crate::corrd::Lease;
use crate::identity::{IdempotencyKey, Owner};
use crate::limits::{BYTES_MAX, FLOOR_GBS_MAX, NAME_LENGTH_MAX};
use crate::memqosd::{
    BandwidthChange, Bundle, BundleRequest, BundleSpec, LatencyClassChange, LatencyClassChanged,
};
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::config::later;
use crate::simulated::ledger::usage::tier_index;
use crate::simulated::memory;
use crate::simulated::records::{BundleRecord, Change, Counters, ForcedBundle};
use crate::units;

impl Ledger {
    pub(in crate::simulated) fn plan_bundle(
        &self,
        terms: &Terms,
        now: Timestamp,
        key: &IdempotencyKey,
        ask: &BundleRequest,
    ) -> Plan<Allocated<BundleRecord>> {
        check_memory(&ask.memory)?;
        if key.object_uid() != ask.owner.object_uid() {
            return Err(malformed("the idempotency key names another object than the owner"));
        }
        if let Some(before) = self.bundle_by_key(key) {
            return same_wish(before, ask).map(|()| (vec![], Allocated::Before(before.clone())));
        }
        let device = self.device_for(DeviceKind::Memory, ask.memory.device_id.as_deref())?;
        check_ticket(terms, now, &ask.owner, device, ask.ticket.as_deref())?;
        self.check_fits(terms, None, &ask.memory)?;
        let number = self.free_bundle_number();
        let record = BundleRecord {
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
        let counters = Counters { bundle: number + 1, ..self.counters };
        let changes = vec![Change::Counters(counters), Change::PutBundle(Box::new(record.clone()))];
        Ok((changes, Allocated::Now(record)))
    }

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
        let tier = terms.pools.tiers[tier_index(memory.latency_class)];
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

    fn bundle_by_key(&self, key: &IdempotencyKey) -> Option<&BundleRecord> {
        self.bundles.get(self.keys.get(&(Kind::Bundle, key.clone()))?)
    }

    pub(in crate::simulated) fn bundle(&self, handle: &str) -> Result<&BundleRecord, Refusal> {
        self.bundles.get(handle).ok_or_else(|| not_found("bundle", handle))
    }

    pub(in crate::simulated) fn bundles_of(&self, prefix: &str) -> Vec<BundleRecord> {
        self.owned(Kind::Bundle, prefix).filter_map(|it| self.bundles.get(it)).cloned().collect()
    }

    /// The bundle, if the caller may change it.
    fn own_bundle(&self, handle: &str, caller: Option<&Owner>) -> Result<&BundleRecord, Refusal> {
        let record = self.bundle(handle)?;
        check_owner(&record.owner, caller).map(|()| record)
    }

    pub(in crate::simulated) fn plan_bundle_release(
        &self,
        handle: &str,
        caller: &Owner,
    ) -> Plan<()> {
        match self.own_bundle(handle, Some(caller)) {
            Ok(_) => Ok((vec![Change::DropBundle(handle.to_owned())], ())),
            // Gone is what was wanted.
            Err(refusal) if refusal.reason == RefusalReason::NotFound => Ok((vec![], ())),
            Err(refusal) => Err(refusal),
        }
    }

    /// Renews; a lapsed bundle has to get its bandwidth back, which can be refused.
    pub(in crate::simulated) fn plan_bundle_lease(
        &self,
        terms: &Terms,
        now: Timestamp,
        handle: &str,
        caller: Option<&Owner>,
    ) -> Plan<Lease> {
        let record = self.own_bundle(handle, caller)?;
        if record.lapsed {
            self.check_fits(terms, Some(record), &record.memory)?;
        }
        let lease_expires_at = later(now, terms.lease_ttl);
        let renewed = BundleRecord { lease_expires_at, lapsed: false, ..record.clone() };
        let lease = Lease { policy_lease_ttl_s: terms.lease_ttl.as_secs(), lease_expires_at };
        Ok((vec![Change::PutBundle(Box::new(renewed))], lease))
    }

    pub(in crate::simulated) fn plan_bandwidth(
        &self,
        terms: &Terms,
        handle: &str,
        caller: Option<&Owner>,
        change: BandwidthChange,
    ) -> Plan<BundleRecord> {
        let record = self.own_bundle(handle, caller)?;
        let mut changed = record.clone();
        changed.memory.floor_gbs = change.floor_gbs;
        check_memory(&changed.memory)?;
        check_not_lapsed(record)?;
        self.check_fits(terms, Some(record), &changed.memory)?;
        Ok((vec![Change::PutBundle(Box::new(changed.clone()))], changed))
    }

    /// Moves every page to the other tier.
    pub(in crate::simulated) fn plan_latency_class(
        &self,
        terms: &Terms,
        handle: &str,
        caller: Option<&Owner>,
        change: LatencyClassChange,
    ) -> Plan<LatencyClassChanged> {
        let record = self.own_bundle(handle, caller)?;
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
        Ok((vec![Change::PutBundle(Box::new(changed))], answer))
    }

    pub(in crate::simulated) fn plan_forced_bundle(
        &self,
        handle: &str,
        forced: ForcedBundle,
    ) -> Plan<()> {
        let record = BundleRecord { forced, ..self.bundle(handle)?.clone() };
        Ok((vec![Change::PutBundle(Box::new(record))], ()))
    }
}

fn handle(number: u64) -> String {
    format!("ffm-{number:06x}")
}

/// As the contract shows it.
pub(in crate::simulated) fn shown(record: BundleRecord, terms: &Terms, now: Timestamp) -> Bundle {
    let achieved_gbs = memory::achieved_gbs(terms.seed, &record, now);
    let BundleRecord { handle, owner, key, memory, created_at, lapsed, .. } = record;
    Bundle {
        ffm_handle: handle,
        owner,
        idempotency_key: key,
        memory,
        achieved_gbs,
        moved_pages: record.moved_pages,
        policy_lease_ttl_s: terms.lease_ttl.as_secs(),
        lease_expires_at: record.lease_expires_at,
        lapsed,
        created_at,
    }
}

/// A key may come back with what was asked first, or with what has become of it since.
fn same_wish(before: &BundleRecord, ask: &BundleRequest) -> Result<(), Refusal> {
    let same = ask.memory == before.asked || ask.memory == before.memory || {
        // The daemon chose the device, the caller still leaves it open.
        before.asked.device_id.is_none()
            && BundleSpec { device_id: None, ..before.memory.clone() } == ask.memory
    };
    if same && before.owner == ask.owner {
        return Ok(());
    }
    let message = format!("the key was used for {} with other fields", before.handle);
    Err(Refusal::new(RefusalReason::KeyReused, message))
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
