//! The state on disk: one row per object, one transaction per request.

use std::path::Path;

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use thiserror::Error;

use super::records::{Change, Counters};
use crate::memqosd::Persistence;

/// Every row: `corridor/<id>`, `bundle/<handle>`, `device/<id>`, `nonce/<nonce>` and `counters`;
/// values are JSON.
const ROWS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("rows");
const COUNTERS: &str = "counters";
const FILE_NAME: &str = "daemons.redb";

/// An embedded database that survives being killed. A commit has returned only when it is on disk.
#[derive(Debug)]
pub(super) struct Store {
    database: Database,
}

impl Store {
    /// Opens or creates the state in `folder`; in memory without one.
    pub(super) fn open(folder: Option<&Path>) -> Result<Self, StoreError> {
        let database = match folder {
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(StoreError::Folder)?;
                Database::create(folder.join(FILE_NAME)).map_err(redb::Error::from)
            }
            None => Database::builder()
                .create_with_backend(InMemoryBackend::new())
                .map_err(redb::Error::from),
        };
        let store = Self { database: database.map_err(open_error)? };
        // Readers need the table to be there.
        store.commit(&[])?;
        Ok(store)
    }

    /// Everything that is stored, as the changes that lead there.
    pub(super) fn load(&self) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        let read = || -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
            let rows = self.database.begin_read()?.open_table(ROWS)?;
            let rows = rows.iter()?.map(|row| {
                let (key, value) = row?;
                Ok((key.value().to_owned(), value.value().to_owned()))
            });
            rows.collect()
        };
        for (key, value) in read().map_err(StoreError::read)? {
            changes.push(decode(&key, &value).map_err(|why| StoreError::Row { key, why })?);
        }
        Ok(changes)
    }

    /// All of `changes` or none.
    pub(super) fn commit(&self, changes: &[Change]) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut rows = transaction.open_table(ROWS)?;
                for change in changes {
                    match encode(change) {
                        (key, Some(value)) => rows.insert(key.as_str(), value.as_slice())?,
                        (key, None) => rows.remove(key.as_str())?,
                    };
                }
            }
            Ok(transaction.commit()?)
        };
        write().map_err(StoreError::write)
    }

    /// Forgets everything but what was promised to last.
    pub(super) fn wipe(&self) -> Result<(), StoreError> {
        let wipe = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(ROWS)?.retain(is_durable)?;
            Ok(transaction.commit()?)
        };
        wipe().map_err(StoreError::write)
    }
}

fn is_durable(key: &str, value: &[u8]) -> bool {
    matches!(decode(key, value), Ok(Change::PutBundle(bundle))
        if bundle.memory.persistence == Persistence::Durable)
}

/// The row of a change; without a value, the row that goes away.
fn encode(change: &Change) -> (String, Option<Vec<u8>>) {
    let (key, value) = match change {
        Change::PutCorridor(record) => (format!("corridor/{}", record.id), json(record)),
        Change::PutBundle(record) => (format!("bundle/{}", record.handle), json(record)),
        Change::PutDevice(device) => (format!("device/{}", device.device_id), json(device)),
        Change::PutNonce { nonce, seen_at } => (format!("nonce/{nonce}"), json(seen_at)),
        Change::Counters(counters) => (COUNTERS.to_owned(), json(counters)),
        Change::DropCorridor(id) => return (format!("corridor/{id}"), None),
        Change::DropBundle(handle) => return (format!("bundle/{handle}"), None),
        Change::DropNonce(nonce) => return (format!("nonce/{nonce}"), None),
    };
    (key, Some(value))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Structs of plain fields always serialize.
    serde_json::to_vec(value).unwrap_or_default()
}

fn decode(key: &str, value: &[u8]) -> Result<Change, String> {
    let read = || -> Result<Option<Change>, serde_json::Error> {
        Ok(Some(match key.split_once('/') {
            Some(("corridor", _)) => Change::PutCorridor(serde_json::from_slice(value)?),
            Some(("bundle", _)) => Change::PutBundle(serde_json::from_slice(value)?),
            Some(("device", _)) => Change::PutDevice(serde_json::from_slice(value)?),
            Some(("nonce", nonce)) => Change::PutNonce {
                nonce: nonce.to_owned(),
                seen_at: serde_json::from_slice(value)?,
            },
            None if key == COUNTERS => Change::Counters(serde_json::from_slice::<Counters>(value)?),
            _ => return Ok(None),
        }))
    };
    read().map_err(|error| error.to_string())?.ok_or_else(|| "it is of no known kind".to_owned())
}

fn open_error(error: redb::Error) -> StoreError {
    match error {
        redb::Error::DatabaseAlreadyOpen => StoreError::InUse,
        error => StoreError::Open(Box::new(error)),
    }
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the state folder cannot be made: {0}")]
    Folder(std::io::Error),
    #[error("the state is in use by another process")]
    InUse,
    #[error("the state cannot be opened: {0}")]
    Open(Box<redb::Error>),
    #[error("the state cannot be read: {0}")]
    Read(Box<redb::Error>),
    #[error("the state cannot be written: {0}")]
    Write(Box<redb::Error>),
    #[error("the row {key:?} cannot be read: {why}")]
    Row { key: String, why: String },
}

impl StoreError {
    fn read(error: redb::Error) -> Self {
        Self::Read(Box::new(error))
    }

    fn write(error: redb::Error) -> Self {
        Self::Write(Box::new(error))
    }
}
