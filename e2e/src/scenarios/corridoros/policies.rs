//! What an AttestationPolicy asks of devices, and which tenants it lets in.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{TEAM, corridor_spec, create_corridor, ensure_contains, site, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::custom::{CustomKind, ticket_of};
use crate::objects::pods::PodTemplate;
use crate::site::{Site, SiteOptions};

/// What becomes of a Corridor under a policy.
enum Outcome {
    /// Allocated on this device, with a ticket signed so.
    On(&'static str, &'static str),
    /// Denied, in these words.
    Denied(&'static str),
}

/// Each constraint alone, in a namespace of its own: the device that meets it is the one that is
/// attested and allocated, and when none does, nothing is.
pub async fn policies_choose_the_device(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let rack = |name: &str| json!({ "matchLabels": { "corridoros.io/rack": name } });
    // phot-0 is in rack a, has firmware 1.4.2 and signs post-quantum; phot-1 is in rack b, has 1.2.0
    // and does not.
    let rows = [
        ("firmware-met", json!({ "minFirmwareVersion": "1.3" }), Outcome::On("phot-0", "ES256")),
        // As versions, not as texts: 1.10 is newer than 1.4.2.
        ("firmware-old", json!({ "minFirmwareVersion": "1.10" }), Outcome::Denied("firmware")),
        ("rack-b", json!({ "deviceSelectors": rack("b") }), Outcome::On("phot-1", "ES256")),
        ("rack-z", json!({ "deviceSelectors": rack("z") }), Outcome::Denied("corridoros.io/rack")),
        ("pqc", json!({ "pqcRequired": true }), Outcome::On("phot-0", "ML-DSA-65")),
    ];
    for (name, policy, outcome) in rows {
        ensure_outcome(&site, &format!("policy-{name}"), policy, outcome).await?;
    }
    Ok(())
}

async fn ensure_outcome(
    site: &Site,
    namespace: &str,
    mut policy: Value,
    outcome: Outcome,
) -> Result<()> {
    site.cluster.ensure_namespace(namespace).await?;
    if policy["pqcRequired"].is_null() {
        // It is required by default, and would be a second constraint.
        policy["pqcRequired"] = json!(false);
    }
    site.create(CustomKind::AttestationPolicy, namespace, "p1", policy).await?;
    let corridor = site.create(CustomKind::Corridor, namespace, "c1", corridor_spec()).await?;
    match outcome {
        Outcome::Denied(words) => {
            corridor.until_not_ready("AttestationFailed", &[words]).await?;
            let held = site.allocations_of(&corridor).await?;
            ensure(held.is_empty(), || format!("denied, and still allocated: {held:?}"))
        }
        Outcome::On(device, algorithm) => {
            let ready = corridor.until_ready().await?;
            let held = site.allocations_of(&corridor).await?;
            ensure(held.len() == 1 && held[0]["device_id"] == device, || {
                format!("{namespace} is served by {device} only, corrd has {held:?}")
            })?;
            let header = ticket_header(&ready)?;
            ensure(header["alg"] == algorithm, || {
                format!("in {namespace} a ticket is signed with {algorithm}, not {header}")
            })
        }
    }
}

fn ticket_header(object: &Value) -> Result<Value> {
    let doing = "reading the header of an attestation ticket";
    let ticket = ticket_of(object).ok_or_else(|| Error::malformed(doing, "there is none"))?;
    let header = ticket.split('.').next().unwrap_or_default();
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(header)
        .map_err(|problem| Error::malformed(doing, problem))?;
    serde_json::from_slice(&bytes).map_err(|problem| Error::malformed(doing, problem))
}

/// Another namespace's Pods are let in by a policy in the owner's namespace, not by one in their
/// own; without it they are held and say why.
pub async fn tenants_are_let_in_by_the_owner(cluster: &Cluster) -> Result<()> {
    const TENANT: &str = "team-b";
    let site = site(cluster, SiteOptions::default()).await?;
    cluster.ensure_namespace(TENANT).await?;
    let corridor = create_corridor(&site, "c1").await?;
    corridor.until_ready().await?;
    let policy = |tenant: &str| json!({ "allowedTenants": [tenant], "pqcRequired": false });
    site.create(CustomKind::AttestationPolicy, TENANT, "own", policy(TENANT)).await?;
    let ten = PodTemplate::small().refer(&corridor, Some("10"));
    ten.create(site.admin(), TENANT, "tenant").await?;
    let message = until_held(cluster, TENANT, "tenant").await?;
    ensure_contains(&message, &["team-a/c1"])?;
    let owners = site.create(CustomKind::AttestationPolicy, TEAM, "p1", policy(TENANT)).await?;
    until_bound(cluster, TENANT, "tenant").await?;

    // Deleted, it lets no new Pods in, and leaves bound Pods alone.
    owners.delete().await?;
    owners.until_gone().await?;
    ten.create(site.admin(), TENANT, "later").await?;
    until_held(cluster, TENANT, "later").await.map(drop)
}
