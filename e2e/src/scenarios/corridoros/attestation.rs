//! Devices that must prove what they are, and tickets that end.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    TEAM, bind_user, bundle_spec, corridor_spec, ensure_contains, ensure_told, site, until_bound,
    until_held, with,
};
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, condition, handle_of, ticket_of};
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::site::{Site, SiteOptions};

/// More failures than any test waits for.
const ALWAYS: u32 = 1000;
/// Short enough to wait for its end, long enough for a slow machine to be Ready before.
const TICKET_SECONDS: &str = "9";

fn claim_policy(value: &str) -> Value {
    json!({ "pqcRequired": false, "requiredClaims": { "tamperSeal": value } })
}

fn attested_corridor() -> Value {
    with(corridor_spec(), json!({ "attestationRequired": true }))
}

async fn set_claim(site: &Site, devices: &[&str], value: &str) -> Result<()> {
    let claims = json!({ "debug": "disabled", "secureBoot": "true", "tamperSeal": value });
    for device in devices {
        site.daemons.change_device(device, json!({ "claims": claims })).await?;
    }
    Ok(())
}

/// Seed 000 §5: a policy requires claim X, the devices report !X. Corridor and MemoryBundle are
/// denied, condition and Event name the claim, and the daemons have no allocation. The policy is
/// fixed: both become Ready without a change of their own.
pub async fn missing_claim_denies_allocation(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    set_claim(&site, &["phot-0", "phot-1", "mem-0", "mem-1"], "broken").await?;
    let policy = site.create(CustomKind::AttestationPolicy, TEAM, "p1", claim_policy("intact"));
    let policy = policy.await?;
    policy.until("enforced", |it| it["status"]["enforced"] == true).await?;
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", attested_corridor()).await?;
    let bundle = site.create(CustomKind::MemoryBundle, TEAM, "b1", bundle_spec()).await?;
    for object in [&corridor, &bundle] {
        let denied = object.until_not_ready("AttestationFailed", &["tamperSeal"]).await?;
        ensure(denied["status"]["phase"] == "Failed", || {
            format!("a denied object is {}, not Failed", denied["status"]["phase"])
        })?;
        ensure_contains(
            condition(&denied, "Attested")["message"].as_str().unwrap_or_default(),
            &["tamperSeal"],
        )?;
        let event = site.until_event_saying(object, &["tamperSeal"]).await?;
        ensure(event.type_.as_deref() == Some("Warning"), || {
            format!("the Event that denies is of type {:?}, not Warning", event.type_)
        })?;
        let held = site.allocations_of(object).await?;
        ensure(held.is_empty(), || format!("denied, and still allocated: {held:?}"))?;
    }
    ensure_counted(&site, "claim").await?;

    policy.patch_spec(claim_policy("broken")).await?;
    for object in [&corridor, &bundle] {
        let ready = object.until_ready().await?;
        ensure(ready["metadata"]["generation"] == 1, || "nobody changes its spec".into())?;
        ensure_ticket_tells_its_end(object, &ready)?;
    }
    Ok(())
}

async fn ensure_counted(site: &Site, reason: &str) -> Result<()> {
    let metrics = site.scheduler.metrics().await?;
    let wanted = format!("reason=\"{reason}\"");
    let series =
        |line: &&str| line.starts_with("attestation_fail_total{") && line.contains(&wanted);
    let counted = metrics.lines().any(|line| series(&line));
    ensure(counted, || format!("attestation_fail_total has no series with {wanted}"))
}

/// The ticket's own payload, which names its object and its end, agrees with the status.
fn ensure_ticket_tells_its_end(object: &Custom, seen: &Value) -> Result<()> {
    let claims = ticket_claims(seen)?;
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let (of_ticket, of_status) =
        (time(&claims["expires_at"]), time(&seen["status"]["attestationExpiresAt"]));
    let same = of_ticket.map(Timestamp::as_second) == of_status.map(Timestamp::as_second);
    ensure(of_ticket.is_some() && same, || {
        format!("the ticket ends at {of_ticket:?}, the status says {of_status:?}")
    })?;
    let bound_to = (claims["subject"].as_str(), claims["tenant"].as_str());
    ensure(bound_to == (Some(&object.uid), Some(TEAM)), || {
        format!("the ticket of {} is bound to {bound_to:?}", object.title())
    })
}

fn ticket_claims(object: &Value) -> Result<Value> {
    let doing = "reading an attestation ticket";
    let ticket = ticket_of(object).ok_or_else(|| Error::malformed(doing, "there is none"))?;
    let payload = ticket.split('.').nth(1).unwrap_or_default();
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(payload)
        .map_err(|problem| Error::malformed(doing, problem))?;
    serde_json::from_slice(&bytes).map_err(|problem| Error::malformed(doing, problem))
}

/// A device stops reporting a required claim: the audit finds it, no new Pod may use the objects on
/// it, and existing allocations are kept. They can still be released.
pub async fn revoked_device_denies_new_pods(cluster: &Cluster) -> Result<()> {
    let settings = json!({ "attestation": { "auditIntervalSeconds": 1 } });
    let site = site(cluster, SiteOptions { settings, ..SiteOptions::default() }).await?;
    set_claim(&site, &["phot-0", "phot-1"], "intact").await?;
    let policy = site.create(CustomKind::AttestationPolicy, TEAM, "p1", claim_policy("intact"));
    let policy = policy.await?;
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", attested_corridor()).await?;
    let ready = corridor.until_ready().await?;
    let id = handle_of(&ready, CustomKind::Corridor);
    bind_user(&site, &corridor, "10", "before").await?;
    let audited = policy.until("audited", |it| it["status"]["lastAuditTime"].is_string()).await?;

    set_claim(&site, &["phot-0", "phot-1"], "broken").await?;
    policy
        .until("audited again", |it| {
            it["status"]["lastAuditTime"] != audited["status"]["lastAuditTime"]
        })
        .await?;
    corridor.until_not_ready("AttestationFailed", &["tamperSeal"]).await?;
    let ten = PodTemplate::small().refer(&corridor, Some("10"));
    ten.create(site.admin(), TEAM, "after").await?;
    until_held(cluster, TEAM, "after").await?;
    ensure_kept(&site, &corridor, &id).await?;

    delete_pod(site.admin(), TEAM, "before").await?;
    corridor.delete().await?;
    corridor.until_gone().await?;
    site.ensure_nothing_left().await
}

async fn ensure_kept(site: &Site, object: &Custom, id: &str) -> Result<()> {
    let held = site.allocations_of(object).await?;
    let [one] = held.as_slice() else {
        return Err(Error::Violated(format!("{} should keep {id}: {held:?}", object.title())));
    };
    let field = if object.kind == CustomKind::MemoryBundle { "ffm_handle" } else { "corridor_id" };
    ensure(one[field] == id, || format!("{} should keep {id}, has {one}", object.title()))
}

/// attestd does not answer and a ticket ends: no new Pods and no updates, but what stands stays.
/// attestd is back: Ready again, and the Pod is bound. Before that, tickets were renewed in time.
pub async fn expired_ticket_denies_pods_and_updates(cluster: &Cluster) -> Result<()> {
    let daemons = vec!["--ticket-ttl-seconds".to_owned(), TICKET_SECONDS.to_owned()];
    let site = site(cluster, SiteOptions { daemons, ..SiteOptions::default() }).await?;
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", attested_corridor()).await?;
    let ready = corridor.until_ready().await?;
    let id = handle_of(&ready, CustomKind::Corridor);
    let first_ticket = ticket_of(&ready).unwrap_or_default().to_owned();
    let renewed = |it: &Value| ticket_of(it).is_some_and(|ticket| ticket != first_ticket);
    let renewed = corridor.until("attested again before its ticket ends", renewed).await?;
    ensure(renewed["status"]["phase"] == "Ready", || {
        format!("a renewal in time should not show, but it is {}", renewed["status"]["phase"])
    })?;

    site.daemons.order_fault("http_5xx", "POST /v1/attest/verify", ALWAYS).await?;
    corridor.until_not_ready("AttestationFailed", &[]).await?;
    let ten = PodTemplate::small().refer(&corridor, Some("10"));
    ten.create(site.admin(), TEAM, "late").await?;
    until_held(cluster, TEAM, "late").await?;
    corridor.patch_spec(json!({ "minGbps": 120 })).await?;
    corridor
        .until("waiting with its update for a ticket", |it| {
            let pending = condition(it, "UpdatePending");
            pending["status"] == "True" && pending["reason"] == "AttestationFailed"
        })
        .await?;
    let words = "what was allocated before stays as it is";
    ensure_told(&site, &corridor, "UpdateDenied", "Warning", &[words]).await?;
    let stands = site.allocations_of(&corridor).await?;
    ensure(stands.iter().all(|path| path["min_gbps"] == 100), || {
        format!("no update without a good ticket, but corrd has {stands:?}")
    })?;
    ensure_kept(&site, &corridor, &id).await?;

    site.daemons.clear_faults().await?;
    until_bound(cluster, TEAM, "late").await?;
    site.until_allocations(&corridor, "updated", |all| {
        all.iter().all(|path| path["min_gbps"] == 120)
    })
    .await?;
    ensure_kept(&site, &corridor, &id).await
}

/// With attestd away and the ticket ended, deletion still releases.
pub async fn release_needs_no_ticket(cluster: &Cluster) -> Result<()> {
    let daemons = vec!["--ticket-ttl-seconds".to_owned(), "3".to_owned()];
    let site = site(cluster, SiteOptions { daemons, ..SiteOptions::default() }).await?;
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", attested_corridor()).await?;
    corridor.until_ready().await?;
    for route in ["POST /v1/attest/verify", "GET /v1/devices"] {
        site.daemons.order_fault("http_5xx", route, ALWAYS).await?;
    }
    corridor.until_not_ready("AttestationFailed", &[]).await?;
    corridor.delete().await?;
    corridor.until_gone().await?;
    site.ensure_nothing_left().await
}
