//! A Pod with both references: bound only when both are Ready, and everything about it in one write.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    TEAM, bundle_spec, corridor_spec, ensure_contains, site, until_bound, until_held, with,
};
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, handle_of, ticket_of};
use crate::objects::history::History;
use crate::objects::pods::{
    CORRIDOR_ID, FFM_HANDLE, GRANT, PodState as _, PodTemplate, TICKET_HASH,
};
use crate::observe::PATIENCE;
use crate::recorder::{PodVersion, Recorder, versions_of};
use crate::site::SiteOptions;

/// More failures than any test waits for.
const ALWAYS: u32 = 1000;

/// Twice, once with each of the two missing at first: a Pod with both references is held, names what
/// is missing, and is bound when both are Ready. Its corridor, handle, ticket hashes and grant appear
/// in the very version that sets its node.
pub async fn bound_when_both_are_ready(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    // Only a policy makes bundles attested.
    let policy = json!({ "pqcRequired": true, "requiredClaims": { "secureBoot": "true" } });
    site.create(CustomKind::AttestationPolicy, TEAM, "p1", policy).await?;
    let recorder = Recorder::start(site.admin()).await?;
    let corridors = History::start(site.admin(), CustomKind::Corridor, TEAM).await?;
    let bundles = History::start(site.admin(), CustomKind::MemoryBundle, TEAM).await?;
    let mut bound = Vec::new();
    for (name, missing, words) in [
        ("without-bundle", "POST /v1/ffm/alloc", "memory bundle team-a/without-bundle"),
        ("without-corridor", "POST /v1/corridors", "corridor team-a/without-corridor"),
    ] {
        site.daemons.order_fault("http_5xx", missing, ALWAYS).await?;
        let attested = with(corridor_spec(), json!({ "attestationRequired": true }));
        let corridor = site.create(CustomKind::Corridor, TEAM, name, attested).await?;
        let bundle = site.create(CustomKind::MemoryBundle, TEAM, name, bundle_spec()).await?;
        let both = PodTemplate::small().refer(&corridor, Some("40.5")).refer(&bundle, Some("2"));
        both.create(site.admin(), TEAM, name).await?;
        let is_missing_bundle = missing.contains("ffm");
        let (first, second) =
            if is_missing_bundle { (&corridor, &bundle) } else { (&bundle, &corridor) };
        first.until_ready().await?;
        second.until_not_ready("BackendUnreachable", &[]).await?;
        // The first message may be about both; it must be about the one that is missing.
        let message = until_held(cluster, TEAM, name).await?;
        ensure_contains(&message, &[words])?;

        site.daemons.clear_faults().await?;
        second.until_ready().await?;
        let pod = until_bound(cluster, TEAM, name).await?;
        bound.push((pod.uid_str().to_owned(), corridor, bundle));
    }
    let versions = recorder.finish(PATIENCE).await?;
    for (uid, corridor, bundle) in &bound {
        let of_pod = versions_of(&versions, uid);
        ensure_complete_at_once(&of_pod, corridor, bundle).await?;
        ensure_both_ready_before(&of_pod, [(&corridors, corridor), (&bundles, bundle)])?;
    }
    Ok(())
}

/// What a Binding must have written, from what the objects say.
async fn expected(corridor: &Custom, bundle: &Custom) -> Result<[(&'static str, String); 4]> {
    let (path, memory) = (corridor.get().await?, bundle.get().await?);
    let hash = format!("{},{}", ticket_hash(&path)?, ticket_hash(&memory)?);
    let grant = json!({
        "v": 1,
        "corridor": { "uid": corridor.uid, "milliGbps": 40_500 },
        "bundle": { "uid": bundle.uid, "milliGBs": 2_000 },
    });
    Ok([
        (CORRIDOR_ID, handle_of(&path, CustomKind::Corridor)),
        (FFM_HANDLE, handle_of(&memory, CustomKind::MemoryBundle)),
        (TICKET_HASH, hash),
        (GRANT, grant.to_string()),
    ])
}

/// Hex SHA-256 of the ticket that an object carries.
fn ticket_hash(object: &Value) -> Result<String> {
    let title = || format!("{} {}", object["kind"], object["metadata"]["name"]);
    let ticket = ticket_of(object)
        .ok_or_else(|| Error::Violated(format!("{} carries no attestation ticket", title())))?;
    let mut hex = String::new();
    for byte in Sha256::digest(ticket.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

async fn ensure_complete_at_once(
    versions: &[&PodVersion],
    corridor: &Custom,
    bundle: &Custom,
) -> Result<()> {
    let bound_at = versions.iter().position(|version| version.pod.node().is_some());
    let [.., before, bound] = &versions[..bound_at.map_or(0, |at| at + 1)] else {
        return Err(Error::Violated("a Pod was never seen both waiting and bound".into()));
    };
    for (key, expected) in expected(corridor, bundle).await? {
        let early = before.pod.annotation(key);
        ensure(early.is_none(), || format!("{key} is {early:?} before the Pod has a node"))?;
        let found = bound.pod.annotation(key).unwrap_or_default();
        let is_same = if key == GRANT {
            // The order of members is not part of the contract.
            let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
            parse(found).is_some() && parse(found) == parse(&expected)
        } else {
            found == expected
        };
        ensure(is_same, || {
            format!(
                "in version {}, which sets the node, {key} is {found:?}, not {expected:?}",
                bound.resource_version
            )
        })?;
    }
    Ok(())
}

/// The versions of all kinds are counted by one counter, so they can be compared.
fn ensure_both_ready_before(
    versions: &[&PodVersion],
    histories: [(&History, &Custom); 2],
) -> Result<()> {
    let first = versions.iter().find(|version| version.pod.node().is_some());
    let bound_at = first.map(|version| version.resource_version).unwrap_or_default();
    for (history, object) in histories {
        let of_object = history.of(&object.uid);
        let ready = of_object.iter().find(|version| version["status"]["phase"] == "Ready");
        let ready_at = ready.and_then(|version| {
            version["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok()
        });
        ensure(ready_at.is_some_and(|ready_at| ready_at < bound_at), || {
            format!(
                "a Pod was bound in version {bound_at}, {} Ready in {ready_at:?}",
                object.title()
            )
        })?;
    }
    Ok(())
}
