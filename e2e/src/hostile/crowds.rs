//! Attacks by number: many objects, many Pods, many changes, and a daemon that lies.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::world::{until_bound, until_held};
use crate::binaries::say;
use crate::error::{Doing as _, Result, ensure};
use crate::metrics::sum;
use crate::objects::custom::{Custom, CustomKind};
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::site::Site;

/// Enough to keep the API server busy, not so many that others wait for it.
const CREATING_AT_ONCE: usize = 24;
/// A Pod of another tenant is bound within this time while a crowd is there. Binding takes milliseconds;
/// the rest is room for a machine that is busy with the crowd itself.
const PROMPT: Duration = Duration::from_secs(10);
const FLAPS: u32 = 50;
const FORGERIES: usize = 5;
/// A daemon that lies is listened to for so long.
const LISTENING: Duration = Duration::from_millis(500);

/// An object of a tenant that has nothing to do with the crowd.
async fn bystander(site: &Site, namespace: &str) -> Result<Custom> {
    site.cluster.ensure_namespace(namespace).await?;
    let object = site.create(CustomKind::Corridor, namespace, "own", corridor(100)).await?;
    object.until_ready().await?;
    Ok(object)
}

fn corridor(min_gbps: u32) -> Value {
    json!({
        "lanes": 1, "lambdaNm": [1550], "minGbps": min_gbps, "attestationRequired": false,
    })
}

async fn ensure_prompt(site: &Site, object: &Custom, name: &str) -> Result<()> {
    let begun = Instant::now();
    PodTemplate::small()
        .refer(object, Some("1"))
        .create(site.admin(), &object.namespace, name)
        .await?;
    until_bound(site, &object.namespace, name).await?;
    let took = begun.elapsed();
    say(&format!("hostile: beside {name}, a Pod is bound after {took:.1?}"));
    ensure(took < PROMPT, || format!("beside {name}, a Pod was bound after {took:?}"))
}

/// So many Corridors in one namespace: Pods of others are placed all the same, also while they come.
pub async fn of_corridors(site: &Site, count: usize) -> Result<()> {
    site.cluster.ensure_namespace("crowd").await?;
    let own = bystander(site, "beside-corridors").await?;
    let half = count / 2;
    create_corridors(site, 0..half).await?;
    ensure_prompt(site, &own, "half-a-crowd-of-corridors").await?;
    create_corridors(site, half..count).await?;
    ensure_prompt(site, &own, "a-crowd-of-corridors").await
}

async fn create_corridors(site: &Site, numbers: std::ops::Range<usize>) -> Result<()> {
    stream::iter(numbers)
        .map(|number| async move {
            let name = format!("c-{number}");
            site.create(CustomKind::Corridor, "crowd", &name, corridor(1)).await.map(drop)
        })
        .buffer_unordered(CREATING_AT_ONCE)
        .try_collect()
        .await
}

/// So many Pods wait for one object: another object's Pods do not.
pub async fn of_pods(site: &Site, count: usize) -> Result<()> {
    let full = bystander(site, "crowded").await?;
    let own = bystander(site, "beside-pods").await?;
    let all = PodTemplate::small().refer(&full, Some("100"));
    all.create(site.admin(), &full.namespace, "holder").await?;
    until_bound(site, &full.namespace, "holder").await?;
    stream::iter(0..count)
        .map(|number| {
            let all = &all;
            async move {
                all.create(site.admin(), "crowded", &format!("p-{number}")).await.map(drop)
            }
        })
        .buffer_unordered(CREATING_AT_ONCE)
        .try_collect::<()>()
        .await?;
    ensure_prompt(site, &own, "a-crowd-of-pods").await?;
    let reserved =
        sum(&site.scheduler.metrics().await?, "corridor_reserved_gbps", &["namespace=\"crowded\""]);
    ensure((reserved - 100.0).abs() < 0.001, || format!("{reserved} of 100 Gbps are reserved"))
}

/// A Corridor whose spec is changed back and forth: as many allocations as changes at most, one of
/// them left, and recalibrations in the same measure.
pub async fn of_changes(site: &Site) -> Result<()> {
    let object = bystander(site, "flapping").await?;
    for flap in 0..FLAPS {
        let lanes = 1 + (flap + 1) % 2;
        object.patch_spec(json!({ "lanes": lanes, "minGbps": 50 + 50 * (flap % 2) })).await?;
    }
    let settled = |it: &Value| {
        it["status"]["observedGeneration"] == it["metadata"]["generation"]
            && it["status"]["phase"] == "Ready"
    };
    object.until("settled", settled).await?;
    site.until_allocations(&object, "one", |held| held.len() == 1).await?;
    let scraped = site.scheduler.metrics().await?;
    let of_it = ["namespace=\"flapping\""];
    for metric in ["corridor_allocations_total", "corridor_recalibrations_total"] {
        let counted = sum(&scraped, metric, &of_it);
        say(&format!("hostile: {counted} of {metric} for {FLAPS} changes"));
        ensure(counted <= f64::from(FLAPS + 1), || format!("{metric} is {counted}"))?;
    }
    Ok(())
}

/// A forged status says that an object has no users any more, while the object waits for just that to be
/// released: it is released when its user is gone, and not before.
pub async fn of_an_early_release(site: &Site) -> Result<()> {
    let object = bystander(site, "in-a-hurry").await?;
    let most = PodTemplate::small().refer(&object, Some("60"));
    most.create(site.admin(), "in-a-hurry", "user").await?;
    until_bound(site, "in-a-hurry", "user").await?;
    object.delete().await?;
    object.until_phase("Releasing").await?;
    let drained = json!({
        "type": "Drained", "status": "True", "reason": "Forged", "message": "",
        "observedGeneration": 999, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let forged = Patch::Merge(json!({ "status": { "inUse": 0, "conditions": [drained] } }));
    let params = PatchParams::default();
    for _ in 0..FORGERIES {
        let patched = object.api.patch_status(&object.name, &params, &forged);
        patched.await.doing("forging a status")?;
        tokio::time::sleep(LISTENING / 5).await;
        let held = site.allocations_of(&object).await?;
        ensure(held.len() == 1, || "an object in use was released".into())?;
    }
    delete_pod(site.admin(), "in-a-hurry", "user").await?;
    object.until_gone().await?;
    site.until_allocations(&object, "none", <[Value]>::is_empty).await.map(drop)
}

/// Telemetry that is no number, or one that cannot be: no Pod is bound by it, and the status never
/// shows it.
pub async fn of_lies(site: &Site) -> Result<()> {
    let Some(meddler) = &site.meddler else {
        return Err(crate::Error::Violated("the site has no meddler".into()));
    };
    let object = bystander(site, "lied-to").await?;
    let most = PodTemplate::small().refer(&object, Some("60"));
    most.create(site.admin(), "lied-to", "first").await?;
    until_bound(site, "lied-to", "first").await?;
    most.create(site.admin(), "lied-to", "second").await?;
    until_held(site, "lied-to", "second").await?;
    let id = object.handle().await?;
    for lie in ["NaN", "\"NaN\"", "1e400", "-1", "null", "9223372036854775808"] {
        meddler.rewrite("achievable_gbps", lie);
        // What crosses a floor is told at once, and arrives as a lie.
        site.daemons.force_corridor(&id, json!({ "achievable_gbps": 99 })).await?;
        tokio::time::sleep(LISTENING).await;
        let seen = object.get().await?;
        let shown = &seen["status"]["achievableGbps"];
        let is_sane =
            shown.is_null() || shown.as_f64().is_some_and(|it| it.is_finite() && it >= 0.0);
        ensure(is_sane, || format!("after {lie} the status says {shown}"))?;
        meddler.relent();
        site.daemons.force_corridor(&id, json!({})).await?;
    }
    object.until_ready().await?;
    until_held(site, "lied-to", "second").await.map(drop)
}
