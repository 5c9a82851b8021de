//! What the daemons gave and took back, as their answers say.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::proxy::{Answer, Call};

/// The allocations of every owner that was ever seen.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By the UID of the owner's object.
    owners: BTreeMap<String, Account>,
}

/// The allocations of one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Ids, in the order in which they were given.
    pub made: Vec<String>,
    pub live: Vec<String>,
    /// The most that lived at one time.
    pub live_max: usize,
}

impl Ledger {
    /// Takes note of an answer. Returns the id and the owner's UID of a new allocation.
    pub fn note(&mut self, call: &Call, answer: &Answer) -> Option<(String, String)> {
        let path = call.path();
        if call.method == Method::POST
            && matches!(path, "/v1/corridors" | "/v1/ffm/alloc")
            && answer.status == StatusCode::CREATED
        {
            return self.note_made(&answer.body);
        }
        if call.method == Method::DELETE && answer.status == StatusCode::NO_CONTENT {
            let id = path.rsplit('/').next().unwrap_or_default();
            for account in self.owners.values_mut() {
                account.live.retain(|live| live != id);
            }
        }
        None
    }

    fn note_made(&mut self, body: &[u8]) -> Option<(String, String)> {
        let made: Value = serde_json::from_slice(body).ok()?;
        let id = ["corridor_id", "ffm_handle"].iter().find_map(|name| made[*name].as_str())?;
        let (_, uid) = made["owner"].as_str()?.split_once('/')?;
        let account = self.owners.entry(uid.to_owned()).or_default();
        account.made.push(id.to_owned());
        account.live.push(id.to_owned());
        account.live_max = account.live_max.max(account.live.len());
        Some((id.to_owned(), uid.to_owned()))
    }

    pub fn account(&self, uid: &str) -> Account {
        self.owners.get(uid).cloned().unwrap_or_default()
    }

    pub fn forget(&mut self, uid: &str) {
        self.owners.remove(uid);
    }
}
