//! What is allocated, as a pure state machine: a request is planned into changes, the changes are
//! stored, then applied. Nothing here reads a clock or touches a disk.

mod attest;
mod bundles;
mod corridors;
mod devices;
mod record;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;

pub(super) use self::devices::DeviceChange;
pub(super) use self::record::Record;
pub(super) use self::usage::Usage;
use super::config::Pools;
use super::records::{BundleRecord, Change, CorridorRecord, Counters};
use crate::attestd::Device;
use crate::identity::{IdempotencyKey, Owner};
use crate::memqosd::Persistence;
use crate::refusal::{Refusal, RefusalReason};
use crate::ticket::{SigningKey, TrustedKeys};

/// What a request leads to: the changes to store, and the answer to give once they are stored.
pub(super) type Plan<T> = Result<(Vec<Change>, T), Refusal>;

/// The rules of this simulation.
#[derive(Debug)]
pub(super) struct Terms {
    pub seed: u64,
    pub pools: Pools,
    pub lease_ttl: Duration,
    pub ticket_ttl: Duration,
    pub tickets_required: bool,
    pub es256: SigningKey,
    pub ml_dsa: SigningKey,
    pub trusted: TrustedKeys,
}

/// A wish that was seen before leads to what it led to then.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Allocated<T> {
    Now(T),
    Before(T),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Corridor,
    Bundle,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) corridors: BTreeMap<String, CorridorRecord>,
    pub(super) bundles: BTreeMap<String, BundleRecord>,
    pub(super) devices: BTreeMap<String, Device>,
    pub(super) nonces: BTreeMap<String, Timestamp>,
    nonces_by_age: BTreeSet<(Timestamp, String)>,
    counters: Counters,
    keys: HashMap<(Kind, IdempotencyKey), String>,
    owners: BTreeSet<(Kind, String, String)>,
    expiries: BTreeSet<(Timestamp, Kind, String)>,
    usage: Usage,
}

impl Ledger {
    /// The configured devices, then what was stored.
    pub(super) fn new(devices: &[Device], stored: Vec<Change>) -> Self {
        let mut ledger = Self::default();
        for device in devices {
            ledger.apply(Change::PutDevice(Box::new(device.clone())));
        }
        for change in stored {
            ledger.apply(change);
        }
        ledger
    }

    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Makes a planned change true. Cannot fail: what could fail was checked when it was planned.
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::PutCorridor(record) => {
                self.forget_corridor(&record.id);
                self.remember(
                    Kind::Corridor,
                    &record.id,
                    &record.owner,
                    &record.key,
                    Some(record.lease_expires_at),
                );
                self.usage.take_path(&record.path);
                self.corridors.insert(record.id.clone(), *record);
            }
            Change::DropCorridor(id) => self.forget_corridor(&id),
            Change::PutBundle(record) => {
                self.forget_bundle(&record.handle);
                let expires = (!record.lapsed).then_some(record.lease_expires_at);
                let (handle, owner) = (&record.handle, &record.owner);
                self.remember(Kind::Bundle, handle, owner, &record.key, expires);
                self.usage.take_memory(&record.memory, record.lapsed);
                self.bundles.insert(record.handle.clone(), *record);
            }
            Change::DropBundle(handle) => self.forget_bundle(&handle),
            Change::PutDevice(device) => {
                self.devices.insert(device.device_id.clone(), *device);
            }
            Change::PutNonce { nonce, seen_at } => {
                self.nonces_by_age.insert((seen_at, nonce.clone()));
                self.nonces.insert(nonce, seen_at);
            }
            Change::DropNonce(nonce) => {
                if let Some(seen_at) = self.nonces.remove(&nonce) {
                    self.nonces_by_age.remove(&(seen_at, nonce));
                }
            }
            Change::Counters(counters) => self.counters = counters,
        }
    }

    fn remember(
        &mut self,
        kind: Kind,
        id: &str,
        owner: &Owner,
        key: &IdempotencyKey,
        expires: Option<Timestamp>,
    ) {
        self.keys.insert((kind, key.clone()), id.to_owned());
        self.owners.insert((kind, owner.to_string(), id.to_owned()));
        self.expiries.extend(expires.map(|at| (at, kind, id.to_owned())));
    }

    fn forget_corridor(&mut self, id: &str) {
        if let Some(record) = self.corridors.remove(id) {
            let CorridorRecord { id, owner, key, path, lease_expires_at, .. } = record;
            self.usage.return_path(&path);
            self.forget(Kind::Corridor, id, &owner, key, lease_expires_at);
        }
    }

    fn forget_bundle(&mut self, handle: &str) {
        if let Some(record) = self.bundles.remove(handle) {
            let BundleRecord { handle, owner, key, memory, lapsed, lease_expires_at, .. } = record;
            self.usage.return_memory(&memory, lapsed);
            self.forget(Kind::Bundle, handle, &owner, key, lease_expires_at);
        }
    }

    fn forget(
        &mut self,
        kind: Kind,
        id: String,
        owner: &Owner,
        key: IdempotencyKey,
        expires: Timestamp,
    ) {
        self.keys.remove(&(kind, key));
        self.expiries.remove(&(expires, kind, id.clone()));
        self.owners.remove(&(kind, owner.to_string(), id));
    }

    /// Ids of one kind whose owner tag begins with `prefix`, in the order of their owners.
    fn owned(&self, kind: Kind, prefix: &str) -> impl Iterator<Item = &str> {
        self.owners
            .range((kind, prefix.to_owned(), String::new())..)
            .take_while(move |(k, owner, _)| *k == kind && owner.starts_with(prefix))
            .map(|(_, _, id)| id.as_str())
    }

    /// Allocations whose lease has expired.
    pub(super) fn plan_expiry(&self, now: Timestamp) -> Vec<Change> {
        let due = self.expiries.iter().take_while(|(at, _, _)| *at <= now);
        let lost = due.map(|(_, kind, id)| match (kind, self.bundles.get(id)) {
            (Kind::Corridor, _) => Change::DropCorridor(id.clone()),
            // Data that was promised to last is not thrown away; only its bandwidth is freed.
            (Kind::Bundle, Some(bundle)) if bundle.memory.persistence == Persistence::Durable => {
                Change::PutBundle(Box::new(BundleRecord { lapsed: true, ..bundle.clone() }))
            }
            (Kind::Bundle, _) => Change::DropBundle(id.clone()),
        });
        lost.collect()
    }
}

/// Whether the caller owns the allocation. Who gives no owner tag is not checked, except where the
/// contract demands one.
fn check_owner(owner: &Owner, caller: Option<&Owner>) -> Result<(), Refusal> {
    match caller {
        Some(caller) if caller != owner => {
            Err(Refusal::new(RefusalReason::Owner, "the allocation belongs to another owner"))
        }
        _ => Ok(()),
    }
}

fn not_found(what: &str, id: &str) -> Refusal {
    Refusal::new(RefusalReason::NotFound, format!("there is no {what} {id:?}"))
}

fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalReason::Malformed, message)
}
