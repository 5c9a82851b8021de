//! Attestation tickets: what attestd signs and everyone else verifies without asking it.
//!
//! A ticket is a JWS in compact form (`header.claims.signature`, each base64url without padding),
//! signed with ES256 (P-256, SHA-256) or ML-DSA-65. The keys come from the reader's configuration,
//! never from attestd.

mod keys;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::keys::{Algorithm, KeyError, SigningKey, TrustedKey, TrustedKeys};
use crate::firmware::firmware_at_least;
use crate::limits::TICKET_LENGTH_MAX;

/// How far attestd's clock may be ahead of ours.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_secs(60);

/// What a ticket states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketClaims {
    /// UID of the custom resource.
    pub subject: String,
    pub device_id: String,
    /// Namespace of the custom resource.
    pub tenant: String,
    /// The nonce of the request that led to it.
    pub nonce: String,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default)]
    pub firmware: String,
    /// What the device claims about itself.
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: Algorithm,
    kid: String,
    typ: String,
}

/// Keeps a ticket from being taken for another kind of JWS signed with the same key.
const TICKET_TYPE: &str = "corridor-ticket";

/// What a ticket must state to be accepted.
#[derive(Clone, Debug)]
pub struct TicketExpectation<'a> {
    pub now: Timestamp,
    pub subject: &'a str,
    pub device_id: &'a str,
    pub tenant: &'a str,
    /// Of the request just made; `None` for a ticket that is looked at again later.
    pub nonce: Option<&'a str>,
    pub pqc_required: bool,
    pub min_firmware: Option<&'a str>,
    pub required_claims: &'a BTreeMap<String, String>,
}

/// Signs `claims`.
pub fn sign(claims: &TicketClaims, key: &SigningKey) -> String {
    let header =
        Header { alg: key.algorithm(), kid: key.kid().to_owned(), typ: TICKET_TYPE.to_owned() };
    // Structs of plain fields always serialize.
    let encode =
        |part: Result<Vec<u8>, serde_json::Error>| URL_SAFE_NO_PAD.encode(part.unwrap_or_default());
    let header = encode(serde_json::to_vec(&header));
    let signed = format!("{header}.{}", encode(serde_json::to_vec(claims)));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// Who signed it, and what it states. Says nothing about whether it is accepted here and now.
pub fn authenticate(
    ticket: &str,
    keys: &TrustedKeys,
) -> Result<(TicketClaims, Algorithm), TicketFault> {
    if ticket.len() > TICKET_LENGTH_MAX {
        return Err(TicketFault::Malformed("it is too long"));
    }
    let (signed, signature) =
        ticket.rsplit_once('.').ok_or(TicketFault::Malformed("it has no signature"))?;
    let (header, claims) =
        signed.split_once('.').ok_or(TicketFault::Malformed("it does not have three parts"))?;
    let decode = |part: &str| {
        URL_SAFE_NO_PAD.decode(part).map_err(|_| TicketFault::Malformed("it is not base64url"))
    };
    let header: Header = serde_json::from_slice(&decode(header)?)
        .map_err(|_| TicketFault::Malformed("its header cannot be read"))?;
    if header.typ != TICKET_TYPE {
        return Err(TicketFault::Malformed("it is something else than a ticket"));
    }
    // The key decides the algorithm; the header only has to agree.
    let key = keys.find(&header.kid).ok_or_else(|| TicketFault::UnknownKey(header.kid.clone()))?;
    if key.algorithm() != header.alg || !key.verifies(signed.as_bytes(), &decode(signature)?) {
        return Err(TicketFault::Signature);
    }
    let claims = serde_json::from_slice(&decode(claims)?)
        .map_err(|_| TicketFault::Malformed("its claims cannot be read"))?;
    Ok((claims, header.alg))
}

/// Whether a ticket is good for this use, here and now.
pub fn verify(
    ticket: &str,
    keys: &TrustedKeys,
    expected: &TicketExpectation<'_>,
) -> Result<TicketClaims, TicketFault> {
    let (claims, algorithm) = authenticate(ticket, keys)?;
    check_lifetime(&claims, expected.now)?;
    if claims.subject != expected.subject {
        return Err(TicketFault::Subject { stated: claims.subject });
    }
    if claims.tenant != expected.tenant {
        return Err(TicketFault::Tenant { stated: claims.tenant });
    }
    if claims.device_id != expected.device_id {
        return Err(TicketFault::Device { stated: claims.device_id });
    }
    if expected.nonce.is_some_and(|nonce| nonce != claims.nonce) {
        return Err(TicketFault::Nonce);
    }
    if expected.pqc_required && !algorithm.is_post_quantum() {
        return Err(TicketFault::Pqc { used: algorithm });
    }
    if let Some(least) = expected.min_firmware
        && !firmware_at_least(&claims.firmware, least)
    {
        return Err(TicketFault::Firmware { have: claims.firmware, least: least.to_owned() });
    }
    for (name, wanted) in expected.required_claims {
        let have = claims.claims.get(name);
        if have != Some(wanted) {
            let (name, wanted, have) = (name.clone(), wanted.clone(), have.cloned());
            return Err(TicketFault::Claim { name, wanted, have });
        }
    }
    Ok(claims)
}

/// Neither expired nor from the future.
pub fn check_lifetime(claims: &TicketClaims, now: Timestamp) -> Result<(), TicketFault> {
    if claims.expires_at <= now {
        return Err(TicketFault::Expired { at: claims.expires_at });
    }
    if claims.issued_at.duration_since(now) > CLOCK_SKEW_MAX {
        return Err(TicketFault::NotYetValid { from: claims.issued_at });
    }
    Ok(())
}

/// Why a ticket is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketFault {
    #[error("the ticket is malformed: {0}")]
    Malformed(&'static str),
    #[error("the ticket was signed with the key {0:?}, which is not trusted")]
    UnknownKey(String),
    #[error("the signature of the ticket is wrong")]
    Signature,
    #[error("the ticket expired at {at}")]
    Expired { at: Timestamp },
    #[error("the ticket is valid only from {from}")]
    NotYetValid { from: Timestamp },
    #[error("the ticket was issued for the object {stated}")]
    Subject { stated: String },
    #[error("the ticket was issued for the namespace {stated}")]
    Tenant { stated: String },
    #[error("the ticket was issued for the device {stated}")]
    Device { stated: String },
    #[error("the ticket answers another nonce")]
    Nonce,
    #[error("the ticket is signed with {used}, a post-quantum signature is required")]
    Pqc { used: Algorithm },
    #[error("firmware {have:?} is older than {least}")]
    Firmware { have: String, least: String },
    #[error("claim {name:?} must be {wanted:?}, is {have:?}")]
    Claim { name: String, wanted: String, have: Option<String> },
}

impl TicketFault {
    /// The label of `attestation_fail_total`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::UnknownKey(_) | Self::Signature => "signature",
            Self::Expired { .. } | Self::NotYetValid { .. } => "expired",
            Self::Subject { .. } | Self::Tenant { .. } => "tenant",
            Self::Nonce => "nonce",
            Self::Pqc { .. } => "pqc",
            Self::Firmware { .. } => "firmware",
            Self::Device { .. } | Self::Claim { .. } => "claim",
        }
    }
}

#[cfg(test)]
mod tests;
