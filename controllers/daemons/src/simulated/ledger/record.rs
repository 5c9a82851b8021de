//! What paths and bundles have in common, and the requests that are the same for both.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Allocated, Kind, Ledger, Plan, Terms, check_owner, malformed, not_found};
use crate::corrd::Lease;
use crate::identity::{IdempotencyKey, Owner};
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::config::later;
use crate::simulated::records::Change;

/// One allocation as it is stored.
pub(in crate::simulated) trait Record: Clone + Send + 'static {
    const KIND: Kind;
    /// In the words of a refusal, and as the field of a list.
    const NAME: &'static str;
    const LIST: &'static str;
    type Request: DeserializeOwned + Send + 'static;
    /// As the contract shows it.
    type Shown: Serialize + Send + 'static;
    /// What a test makes of it.
    type Forced: DeserializeOwned + Send + 'static;

    fn all(ledger: &Ledger) -> &BTreeMap<String, Self>;
    fn owner(&self) -> &Owner;
    fn plan(
        ledger: &Ledger,
        terms: &Terms,
        now: Timestamp,
        key: &IdempotencyKey,
        ask: &Self::Request,
    ) -> Plan<Allocated<Self>>;
    /// A request may come back as it was first, or with what has become of it since.
    fn is_same_wish(&self, ask: &Self::Request) -> bool;
    /// With a lease that ends then, if the ledger can still give what it needs.
    fn renewed(&self, ledger: &Ledger, terms: &Terms, end: Timestamp) -> Result<Self, Refusal>;
    fn put(self) -> Change;
    fn drop(id: String) -> Change;
    fn shown(self, terms: &Terms, now: Timestamp) -> Self::Shown;
    fn forced(self, forced: Self::Forced) -> Self;
}

impl Ledger {
    pub(in crate::simulated) fn find<R: Record>(&self, id: &str) -> Result<&R, Refusal> {
        R::all(self).get(id).ok_or_else(|| not_found(R::NAME, id))
    }

    /// What an earlier request with this key led to. A key of another object than the owner's is refused.
    pub(super) fn find_repeated<R: Record>(
        &self,
        key: &IdempotencyKey,
        owner: &Owner,
        ask: &R::Request,
    ) -> Result<Option<&R>, Refusal> {
        if key.object_uid() != owner.object_uid() {
            return Err(malformed("the idempotency key names another object than the owner"));
        }
        let Some(id) = self.keys.get(&(R::KIND, key.clone())) else { return Ok(None) };
        match R::all(self).get(id) {
            Some(before) if !before.is_same_wish(ask) => {
                let message = format!("the key was used for {id} with other fields");
                Err(Refusal::new(RefusalReason::KeyReused, message))
            }
            before => Ok(before),
        }
    }

    /// Those whose owner tag begins with `prefix`.
    pub(in crate::simulated) fn find_by_owner<R: Record>(&self, prefix: &str) -> Vec<R> {
        self.owned(R::KIND, prefix).filter_map(|id| R::all(self).get(id)).cloned().collect()
    }

    /// The record, if the caller may change it.
    pub(super) fn find_own<R: Record>(
        &self,
        id: &str,
        caller: Option<&Owner>,
    ) -> Result<&R, Refusal> {
        let record = self.find::<R>(id)?;
        check_owner(record.owner(), caller).map(|()| record)
    }

    pub(in crate::simulated) fn plan_release<R: Record>(
        &self,
        id: &str,
        caller: &Owner,
    ) -> Plan<()> {
        match self.find_own::<R>(id, Some(caller)) {
            Ok(_) => Ok((vec![R::drop(id.to_owned())], ())),
            // Gone is what was wanted.
            Err(refusal) if refusal.reason == RefusalReason::NotFound => Ok((vec![], ())),
            Err(refusal) => Err(refusal),
        }
    }

    pub(in crate::simulated) fn plan_lease<R: Record>(
        &self,
        terms: &Terms,
        now: Timestamp,
        id: &str,
        caller: Option<&Owner>,
    ) -> Plan<Lease> {
        let record = self.find_own::<R>(id, caller)?;
        let lease_expires_at = later(now, terms.lease_ttl);
        let renewed = record.renewed(self, terms, lease_expires_at)?;
        let lease = Lease { policy_lease_ttl_s: terms.lease_ttl.as_secs(), lease_expires_at };
        Ok((vec![renewed.put()], lease))
    }

    pub(in crate::simulated) fn plan_forced<R: Record>(
        &self,
        id: &str,
        forced: R::Forced,
    ) -> Plan<()> {
        Ok((vec![self.find::<R>(id)?.clone().forced(forced).put()], ()))
    }
}
