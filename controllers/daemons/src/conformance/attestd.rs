//! Devices, nonces and tickets.

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use super::probe::{Flaw, Probe, ensure, question};
use super::{Check, Verdict, check};
use crate::attestd::{Attestd, Device, DeviceKind, Verified};
use crate::corrd::CorridorRequest;
use crate::identity::Owner;
use crate::ticket::{self, TicketExpectation};

const VERIFY: &str = "/v1/attest/verify";

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("attestd: the inventory has photonic and memory devices, none twice", inventory),
        check("attestd: a ticket states subject, device, tenant, nonce and expiry", stated),
        check("attestd: a ticket with pqc is signed with ML-DSA-65", post_quantum),
        check("attestd: a device without post-quantum signatures is refused with pqc", no_pqc),
        check("attestd: a nonce that was used before is refused", replayed),
        check("attestd: a refused nonce is used up too", replayed_after_refusal),
        check("attestd: a nonce that could be guessed is refused", short_nonce),
        check("attestd: an unknown device is not found", unknown_device),
        check("attestd: a changed claim stands in the next ticket", changed_claim),
        check("corrd: a good ticket is accepted", accepted),
        check("corrd: a changed ticket is refused", changed_ticket),
        check("corrd: a ticket of another object is refused", foreign_subject),
        check("corrd: a ticket of another device is refused", foreign_device),
        check("memqosd: a ticket of another object is refused", foreign_subject_bundle),
    ]
}

async fn inventory(probe: &Probe) -> Verdict {
    let devices = probe.attestd.devices().await?;
    let ids: BTreeMap<&str, DeviceKind> =
        devices.iter().map(|it| (it.device_id.as_str(), it.kind)).collect();
    ensure(ids.len() == devices.len(), || format!("{devices:?}"))?;
    let has = |kind| ids.values().any(|it| *it == kind);
    ensure(has(DeviceKind::Photonic) && has(DeviceKind::Memory), || format!("{devices:?}"))
}

/// Verifies a ticket as a controller does.
fn judged(
    probe: &Probe,
    owner: &Owner,
    device: &Device,
    verified: &Verified,
    pqc_required: bool,
) -> Verdict {
    if probe.trusted.is_empty() {
        return Err(Flaw::Skipped("no trusted keys were given".to_owned()));
    }
    let expected = TicketExpectation {
        now: Timestamp::now(),
        subject: owner.object_uid(),
        device_id: &device.device_id,
        tenant: "team-a",
        nonce: Some(&verified.nonce),
        pqc_required,
        min_firmware: Some(&device.firmware),
        required_claims: &device.claims,
    };
    let claims = ticket::verify(&verified.ticket, &probe.trusted, &expected)
        .map_err(|fault| Flaw::Broken(fault.to_string()))?;
    ensure(claims.expires_at == verified.expires_at, || format!("{claims:?}"))
}

async fn stated(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Photonic, true).await?, probe.owner()?);
    let verified = probe.attest(&device, &owner, false).await?;
    ensure(!verified.measurements.is_empty(), || format!("{verified:?}"))?;
    judged(probe, &owner, &device, &verified, false)
}

async fn post_quantum(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Memory, true).await?, probe.owner()?);
    let verified = probe.attest(&device, &owner, true).await?;
    judged(probe, &owner, &device, &verified, true)
}

async fn no_pqc(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Photonic, false).await?, probe.owner()?);
    let body = json!(question(&device, &owner, true)?);
    let raw = probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?;
    raw.expect_refusal(422, "pqc")
}

async fn replayed(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Photonic, true).await?, probe.owner()?);
    let body = json!(question(&device, &owner, false)?);
    probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?.expect(200)?;
    let raw = probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?;
    raw.expect_refusal(409, "nonce_replayed")
}

async fn replayed_after_refusal(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Photonic, false).await?, probe.owner()?);
    let mut asked = question(&device, &owner, true)?;
    let body = json!(asked);
    let raw = probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?;
    raw.expect_refusal(422, "pqc")?;
    asked.pqc = false;
    let body = json!(asked);
    let raw = probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?;
    raw.expect_refusal(409, "nonce_replayed")
}

async fn short_nonce(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Photonic, true).await?, probe.owner()?);
    for nonce in ["", "short", "with spaces in between", "line\nbreak-line-break"] {
        let mut body = json!(question(&device, &owner, false)?);
        body["nonce"] = json!(nonce);
        let raw = probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?;
        raw.expect_refusal(400, "malformed")?;
    }
    Ok(())
}

async fn unknown_device(probe: &Probe) -> Verdict {
    let device = Device { device_id: "no-such-device".to_owned(), ..Device::default() };
    let body = json!(question(&device, &probe.owner()?, false)?);
    let raw = probe.raw(&probe.attestd, Method::POST, VERIFY, &[], Some(&body)).await?;
    raw.expect_refusal(404, "not_found")
}

async fn changed_claim(probe: &Probe) -> Verdict {
    let (device, owner) = (probe.device(DeviceKind::Photonic, true).await?, probe.owner()?);
    let target = format!("/admin/devices/{}", device.device_id);
    let changed = json!({ "claims": { "secureBoot": "false" }, "firmware": "0.9.0" });
    probe.admin(Method::PUT, &target, changed).await?;
    let verified = probe.attest(&device, &owner, false).await;
    let before = json!({ "claims": device.claims, "firmware": device.firmware });
    probe.admin(Method::PUT, &target, before).await?;
    let verified = verified?;
    let seen = verified.claims.get("secureBoot").is_some_and(|it| it == "false");
    ensure(seen && verified.firmware == "0.9.0", || format!("{verified:?}"))
}

/// A wish with a ticket that is good for it.
async fn ticketed(probe: &Probe) -> Result<CorridorRequest, Flaw> {
    let device = probe.device(DeviceKind::Photonic, true).await?;
    let mut wish = probe.corridor_wish()?;
    wish.ticket = Some(probe.attest(&device, &wish.owner, true).await?.ticket);
    wish.path.device_id = Some(device.device_id);
    Ok(wish)
}

async fn accepted(probe: &Probe) -> Verdict {
    let wish = ticketed(probe).await?;
    let body = probe.post_corridor(&wish).await?.expect(201)?;
    ensure(body["device_id"] == json!(wish.path.device_id), || format!("{body}"))
}

async fn changed_ticket(probe: &Probe) -> Verdict {
    let mut wish = ticketed(probe).await?;
    let ticket = wish.ticket.take().unwrap_or_default();
    for forged in [ticket.replacen('.', ".e", 1), "a.b.c".to_owned(), String::new()] {
        wish.ticket = Some(forged);
        probe.post_corridor(&wish).await?.expect_refusal(401, "ticket_invalid")?;
    }
    Ok(())
}

async fn foreign_subject(probe: &Probe) -> Verdict {
    let mut wish = ticketed(probe).await?;
    wish.owner = probe.owner()?;
    probe.post_corridor(&wish).await?.expect_refusal(403, "ticket_subject")
}

async fn foreign_device(probe: &Probe) -> Verdict {
    let mut wish = ticketed(probe).await?;
    wish.path.device_id = Some(probe.device(DeviceKind::Photonic, false).await?.device_id);
    probe.post_corridor(&wish).await?.expect_refusal(403, "ticket_device")
}

async fn foreign_subject_bundle(probe: &Probe) -> Verdict {
    let device = probe.device(DeviceKind::Memory, true).await?;
    let mut wish = probe.bundle_wish()?;
    wish.ticket = Some(probe.attest(&device, &probe.owner()?, true).await?.ticket);
    wish.memory.device_id = Some(device.device_id);
    probe.post_bundle(&wish).await?.expect_refusal(403, "ticket_subject")
}
