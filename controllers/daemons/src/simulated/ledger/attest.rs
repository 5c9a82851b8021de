//! Requests to attestd.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{Ledger, Plan, Terms, malformed, not_found};
use crate::attestd::{Device, Measurement, Verified, VerifyRequest};
use crate::identity::hex;
use crate::limits::{NAME_LENGTH_MAX, NONCE_LENGTH_MAX, NONCE_LENGTH_MIN};
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::config::later;
use crate::simulated::records::Change;
use crate::ticket::{self, TicketClaims};

/// A replayed nonce is recognised for this long, and among this many.
const NONCE_MEMORY: Duration = Duration::from_hours(24);
const NONCES_MAX: usize = 100_000;
/// Old nonces forgotten at once; two for each new one keep the number bounded.
const NONCES_FORGOTTEN_AT_ONCE: usize = 2;

impl Ledger {
    /// The nonce is used up also when the answer is no.
    pub(in crate::simulated) fn plan_verify(
        &self,
        terms: &Terms,
        now: Timestamp,
        ask: &VerifyRequest,
    ) -> Plan<Result<Verified, Refusal>> {
        check_request(ask)?;
        if self.nonces.contains_key(&ask.nonce) {
            let message = "this nonce was used before";
            return Err(Refusal::new(RefusalReason::NonceReplayed, message));
        }
        let device =
            self.devices.get(&ask.device_id).ok_or_else(|| not_found("device", &ask.device_id))?;
        let mut changes = self.forgotten_nonces(now);
        changes.push(Change::PutNonce { nonce: ask.nonce.clone(), seen_at: now });
        if ask.pqc && !device.pqc {
            let message = format!("{} cannot sign post-quantum", device.device_id);
            return Ok((changes, Err(Refusal::new(RefusalReason::Pqc, message))));
        }
        Ok((changes, Ok(signed(terms, now, ask, device))))
    }

    fn forgotten_nonces(&self, now: Timestamp) -> Vec<Change> {
        let old = |seen_at: Timestamp| later(seen_at, NONCE_MEMORY) <= now;
        let surplus = (self.nonces.len() + 1).saturating_sub(NONCES_MAX);
        let candidates = self.nonces_by_age.iter().take(NONCES_FORGOTTEN_AT_ONCE).enumerate();
        candidates
            .filter(|(index, (seen_at, _))| old(*seen_at) || *index < surplus)
            .map(|(_, (_, nonce))| Change::DropNonce(nonce.clone()))
            .collect()
    }
}

fn check_request(ask: &VerifyRequest) -> Result<(), Refusal> {
    let is_nonce = (NONCE_LENGTH_MIN..=NONCE_LENGTH_MAX).contains(&ask.nonce.len())
        && ask.nonce.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_nonce {
        let message = format!(
            "nonce must be {NONCE_LENGTH_MIN} to {NONCE_LENGTH_MAX} of A-Z, a-z, 0-9, - and _"
        );
        return Err(malformed(message));
    }
    for (name, value) in [("subject", &ask.subject), ("tenant", &ask.tenant)] {
        if value.is_empty() || value.len() > NAME_LENGTH_MAX {
            return Err(malformed(format!("{name} must have 1 to {NAME_LENGTH_MAX} characters")));
        }
    }
    Ok(())
}

fn signed(terms: &Terms, now: Timestamp, ask: &VerifyRequest, device: &Device) -> Verified {
    let key = if ask.pqc { &terms.ml_dsa } else { &terms.es256 };
    let claims = TicketClaims {
        subject: ask.subject.clone(),
        device_id: ask.device_id.clone(),
        tenant: ask.tenant.clone(),
        nonce: ask.nonce.clone(),
        issued_at: now,
        expires_at: later(now, terms.ticket_ttl),
        firmware: device.firmware.clone(),
        claims: device.claims.clone(),
    };
    let measured = |index, component: &str, content: &str| Measurement {
        index,
        component: component.to_owned(),
        digest: hex(&Sha256::digest(content.as_bytes())),
    };
    Verified {
        device_id: ask.device_id.clone(),
        nonce: ask.nonce.clone(),
        measurements: vec![
            measured(1, "firmware", &device.firmware),
            measured(2, "configuration", &format!("{:?}", device.claims)),
        ],
        firmware: device.firmware.clone(),
        claims: device.claims.clone(),
        ticket: ticket::sign(&claims, key),
        expires_at: claims.expires_at,
    }
}
