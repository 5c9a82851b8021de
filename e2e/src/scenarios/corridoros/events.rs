//! What people are told by Events, beside the phases of an object.

use serde_json::{Value, json};

use super::{
    TEAM, bind_user, create_bundle, create_corridor, ensure_contains, site, until_bound, until_held,
};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::custom::{Custom, condition, handle_of, is_true};
use crate::objects::pods::{CORRIDOR_GBPS, PodTemplate};
use crate::site::{Site, SiteOptions};
use kube::api::{Patch, PatchParams};

/// Waits for the Event with this reason: of which type it is, and what it says.
pub(super) async fn ensure_told(
    site: &Site,
    object: &Custom,
    reason: &str,
    event_type: &str,
    parts: &[&str],
) -> Result<()> {
    let event = site.until_event(object, reason).await?;
    ensure(event.type_.as_deref() == Some(event_type), || {
        format!("the Event {reason} is of type {:?}, not {event_type}", event.type_)
    })?;
    ensure_contains(event.message.as_deref().unwrap_or_default(), parts)
}

/// To be asked when what it is about is over.
pub(super) async fn ensure_told_once(site: &Site, object: &Custom, reason: &str) -> Result<()> {
    let told = site.count_events(object, reason).await?;
    ensure(told == 1, || format!("{reason} was told {told} times of {}", object.title()))
}

/// The daemons lose what they had: each object says which allocation it has lost, once, and gets another.
pub async fn lost_allocations_are_told(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let pair = [create_corridor(&site, "c1").await?, create_bundle(&site, "b1").await?];
    let mut former = Vec::new();
    for object in &pair {
        let handle = handle_of(&object.until_ready().await?, object.kind);
        former.push((handle, site.allocations_of(object).await?));
    }
    site.daemons.lose_state().await?;
    for ((object, daemon), (handle, lost)) in pair.iter().zip(["corrd", "memqosd"]).zip(&former) {
        let words = format!("{daemon} has lost {handle}; it is allocated anew");
        ensure_told(&site, object, "AllocationLost", "Warning", &[&words]).await?;
        let is_new =
            |all: &[Value]| all.len() == 1 && all[0]["created_at"] != lost[0]["created_at"];
        site.until_allocations(object, "made anew", is_new).await?;
        object.until_ready().await?;
        ensure_told_once(&site, object, "AllocationLost").await?;
    }
    Ok(())
}

/// A change that corrd refuses, and one of a Pod that comes too late: both are told where they were made, and what
/// stood before stands.
pub async fn updates_in_vain_are_told(cluster: &Cluster) -> Result<()> {
    /// More than any path of the daemons carries.
    const TOO_MUCH_GBPS: u32 = 90_000;
    let site = site(cluster, SiteOptions::default()).await?;
    let corridor = create_corridor(&site, "c1").await?;
    corridor.until_ready().await?;
    bind_user(&site, &corridor, "40", "user").await?;

    corridor.patch_spec(json!({ "minGbps": TOO_MUCH_GBPS })).await?;
    let refused = |it: &Value| {
        let pending = condition(it, "UpdatePending");
        pending["status"] == "True" && pending["reason"] == "AllocationRefused"
    };
    let stands = corridor.until("refused its update", refused).await?;
    ensure(stands["status"]["phase"] == "Ready", || {
        format!("what stood before is {}, not Ready", stands["status"]["phase"])
    })?;
    let words = "what was allocated before stays as it is";
    ensure_told(&site, &corridor, "UpdateRefused", "Warning", &[words]).await?;
    corridor.patch_spec(json!({ "minGbps": 120 })).await?;
    let is_over = |it: &Value| it["status"]["floorGbps"] == 120.0 && !is_true(it, "UpdatePending");
    corridor.until("updated", is_over).await?;
    ensure_told_once(&site, &corridor, "UpdateRefused").await?;

    let much = json!({ "metadata": { "annotations": { CORRIDOR_GBPS: "100" } } });
    let patching = cluster.pods(TEAM);
    let patched = patching.patch("user", &PatchParams::default(), &Patch::Merge(much)).await;
    patched.doing("changing what a bound Pod asks for")?;
    let told = cluster.until_event(TEAM, "user", "AnnotationWithoutEffect").await?;
    let message = told.message.unwrap_or_default();
    ensure_contains(&message, &["was changed after it was bound", "it keeps what it was granted"])?;
    // It has 40 of 120, whatever it says.
    let rest = PodTemplate::small().refer(&corridor, Some("80"));
    rest.create(site.admin(), TEAM, "rest").await?;
    until_bound(cluster, TEAM, "rest").await?;
    let more = PodTemplate::small().refer(&corridor, Some("1"));
    more.create(site.admin(), TEAM, "more").await?;
    let message = until_held(cluster, TEAM, "more").await?;
    ensure_contains(&message, &["0 of 120 Gbps free"])
}
