//! attestd: challenges devices and signs what they proved.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Reply;

/// What a controller needs of attestd. [`crate::Endpoint`] speaks it over HTTP; tests bring a fake.
pub trait Attestd: Send + Sync + 'static {
    /// `GET /v1/devices`: the inventory.
    fn devices(&self) -> Reply<'_, Vec<Device>>;
    /// `POST /v1/attest/verify`. Never repeated by the client, because a nonce counts once: ask
    /// again with a new one.
    fn verify<'a>(&'a self, ask: &'a VerifyRequest) -> Reply<'a, Verified>;
}

/// One device of the inventory. What it says here is not proven: only a ticket is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub device_id: String,
    #[serde(default)]
    pub kind: DeviceKind,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub firmware: String,
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
    /// Whether it can prove itself with post-quantum signatures.
    #[serde(default)]
    pub pqc: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// Carries corridors.
    #[default]
    Photonic,
    /// Carries bundles.
    Memory,
}

/// Reply of `GET /v1/devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceList {
    pub devices: Vec<Device>,
}

/// Body of `POST /v1/attest/verify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyRequest {
    pub device_id: String,
    /// Fresh and random, 16 to 128 characters of `A-Z a-z 0-9 - _`. See [`fresh_nonce`].
    pub nonce: String,
    /// UID of the custom resource that will use the device.
    pub subject: String,
    /// Its namespace.
    pub tenant: String,
    /// Whether the ticket must be signed with ML-DSA-65.
    #[serde(default)]
    pub pqc: bool,
}

/// What a device proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    pub device_id: String,
    pub nonce: String,
    #[serde(default)]
    pub measurements: Vec<Measurement>,
    pub firmware: String,
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
    /// The same, signed: the only part to be believed. See [`crate::ticket`].
    pub ticket: String,
    pub expires_at: Timestamp,
}

/// One SPDM measurement block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    pub index: u32,
    /// What was measured, e.g. `firmware`.
    pub component: String,
    /// SHA-256 in hex.
    pub digest: String,
}

/// A nonce from the operating system's random numbers.
pub fn fresh_nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(crate::identity::hex(&bytes))
}
