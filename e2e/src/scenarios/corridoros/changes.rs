//! Every row of the design's list of spec changes, idle and in use.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{TEAM, bind_user, bundle_spec, corridor_spec, site, until_bound, with};
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, condition, handle_of, is_true, ticket_of};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::observe::PATIENCE;
use crate::site::{Site, SiteOptions};

/// Rows side by side: they do not depend on each other.
const ROWS_AT_ONCE: usize = 8;

/// One row of the list.
struct Row {
    kind: CustomKind,
    name: &'static str,
    patch: Value,
    /// What the daemon has afterwards; null when it is not told.
    at_daemon: Value,
}

fn row(kind: CustomKind, name: &'static str, patch: Value, at_daemon: Value) -> Row {
    Row { kind, name, patch, at_daemon }
}

fn in_place_rows() -> Vec<Row> {
    use CustomKind::{Corridor, MemoryBundle};
    let all_day = json!({ "timeZone": "Europe/Berlin", "windows": [{
        "name": "always",
        "days": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
        "start": "00:00",
        "end": "00:00",
        "bandwidthFloorGBs": 5,
    }]});
    let tuned = json!({ "targetBer": 1e-6, "ambientProfile": "hot-aisle" });
    let tuned_there = json!({ "target_ber": 1e-6, "ambient_profile": "hot-aisle" });
    let gold = json!({ "pfc": true, "priority": "gold" });
    vec![
        row(Corridor, "min-gbps", json!({ "minGbps": 150 }), json!({ "min_gbps": 150 })),
        row(
            Corridor,
            "recalibration",
            json!({ "recalibration": tuned }),
            json!({ "recalibration": tuned_there }),
        ),
        row(Corridor, "qos", json!({ "qos": gold }), json!({ "qos": gold })),
        row(Corridor, "attestation", json!({ "attestationRequired": true }), json!({})),
        row(Corridor, "node-selector", json!({ "nodeSelector": { "zone": "a" } }), json!({})),
        row(MemoryBundle, "floor", json!({ "bandwidthFloorGBs": 12 }), json!({ "floor_GBs": 12 })),
        row(
            MemoryBundle,
            "latency-class",
            json!({ "latencyClass": "T1" }),
            json!({ "latency_class": "T1" }),
        ),
        row(MemoryBundle, "schedule", json!({ "schedule": all_day }), json!({ "floor_GBs": 5 })),
        row(MemoryBundle, "node-selector", json!({ "nodeSelector": { "zone": "a" } }), json!({})),
    ]
}

fn reallocation_rows() -> Vec<Row> {
    use CustomKind::{Corridor, MemoryBundle};
    vec![
        row(
            Corridor,
            "type",
            json!({ "type": "CarbonCorridor" }),
            json!({ "type": "CarbonCorridor" }),
        ),
        row(Corridor, "lanes", json!({ "lanes": 8 }), json!({ "lanes": 8 })),
        row(Corridor, "lambda", json!({ "lambdaNm": [1310] }), json!({ "lambda_nm": [1310] })),
        row(Corridor, "mode", json!({ "mode": "free-space" }), json!({ "mode": "free-space" })),
        row(Corridor, "reach", json!({ "reachMm": 70 }), json!({ "reach_mm": 70 })),
        row(
            Corridor,
            "budget",
            json!({ "latencyBudgetNs": 900 }),
            json!({ "latency_budget_ns": 900 }),
        ),
        row(
            MemoryBundle,
            "bytes",
            json!({ "bytes": 2_u64 << 30 }),
            json!({ "bytes": 2_u64 << 30 }),
        ),
    ]
}

/// In place, idle and in use: the id stays, the daemon has the new value, no Pod waits.
pub async fn changes_in_place(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    // A node that the row with a nodeSelector can go to.
    NodeTemplate::new("64", "256Gi").label("zone", "a").create(site.admin(), "node-a").await?;
    let rows = in_place_rows();
    let cases = rows.iter().flat_map(|row| [(row, false), (row, true)]);
    stream::iter(cases)
        .map(|(row, in_use)| change_in_place(&site, row, in_use))
        .buffer_unordered(ROWS_AT_ONCE)
        .try_collect()
        .await
}

async fn change_in_place(site: &Site, row: &Row, in_use: bool) -> Result<()> {
    let (object, id, user) = start(site, row, in_use).await?;
    let patched = object.patch_spec(row.patch.clone()).await?;
    let generation = &patched["metadata"]["generation"];
    let followed =
        object.until("Ready with its new spec", |it| is_followed(it, generation)).await?;
    let told = |all: &[Value]| all.len() == 1 && contains(&all[0], &row.at_daemon);
    let awaited = format!("one with {}", row.at_daemon);
    site.until_allocations(&object, &awaited, told).await?;
    ensure(handle_of(&followed, row.kind) == id, || {
        let now = handle_of(&followed, row.kind);
        format!("{}: {} in place, but the id {id} became {now}", object.title(), row.patch)
    })?;
    ensure_row_has_effect(site, row, &object).await?;
    if let Some(user) = user {
        delete_pod(site.admin(), TEAM, &user).await?;
    }
    Ok(())
}

fn is_followed(object: &Value, generation: &Value) -> bool {
    object["status"]["phase"] == "Ready"
        && object["status"]["observedGeneration"] == *generation
        && condition(object, "Ready")["observedGeneration"] == *generation
        && !is_true(object, "UpdatePending")
}

/// What the daemon cannot show.
async fn ensure_row_has_effect(site: &Site, row: &Row, object: &Custom) -> Result<()> {
    match row.name {
        "attestation" => {
            object
                .until("attested", |it| is_true(it, "Attested") && ticket_of(it).is_some())
                .await?;
        }
        "latency-class" => {
            let moved = |it: &Value| it["status"]["movedPages"].as_i64().is_some_and(|it| it > 0);
            object.until("telling how many pages moved", moved).await?;
        }
        "min-gbps" => {
            object.until("told its floor", |it| it["status"]["floorGbps"] == 150.0).await?;
        }
        "floor" | "schedule" => {
            let floor = row.at_daemon["floor_GBs"].as_f64();
            object.until("told its floor", |it| it["status"]["floorGBs"].as_f64() == floor).await?;
        }
        "node-selector" => {
            let name = format!("{}-placed", object.name);
            let pod = bind_user(site, object, "1", &name).await?;
            ensure(pod.node() == Some("node-a"), || {
                format!("{} reaches node-a only, its Pod is on {:?}", object.title(), pod.node())
            })?;
            delete_pod(site.admin(), TEAM, &name).await?;
        }
        _ => {}
    }
    Ok(())
}

/// By another allocation: idle at once, the new one before the old one goes; in use it waits with
/// `UpdatePending=True` and the old id, and goes on when the last Pod is gone.
pub async fn changes_by_reallocation(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let rows = reallocation_rows();
    let cases = rows.iter().flat_map(|row| [(row, false), (row, true)]);
    stream::iter(cases)
        .map(|(row, in_use)| change_by_reallocation(&site, row, in_use))
        .buffer_unordered(ROWS_AT_ONCE)
        .try_collect()
        .await
}

async fn change_by_reallocation(site: &Site, row: &Row, in_use: bool) -> Result<()> {
    let (object, id, user) = start(site, row, in_use).await?;
    let patched = object.patch_spec(row.patch.clone()).await?;
    let generation = &patched["metadata"]["generation"];
    if let Some(user) = user {
        let pending = object
            .until("waiting with its update", |it| {
                let update = condition(it, "UpdatePending");
                update["status"] == "True" && update["observedGeneration"] == *generation
            })
            .await?;
        ensure(handle_of(&pending, row.kind) == id, || {
            format!("{} is in use, and {id} became {}", object.title(), pending["status"])
        })?;
        let held = site.allocations_of(&object).await?;
        ensure(held.len() == 1 && !contains(&held[0], &row.at_daemon), || {
            format!("{} is in use and waits, but the daemon has {held:?}", object.title())
        })?;
        delete_pod(site.admin(), TEAM, &user).await?;
    }
    make_before_break(site, row, &object).await?;
    let moved = object
        .until("Ready with its new spec", |it| {
            is_followed(it, generation) && handle_of(it, row.kind) != id
        })
        .await?;
    let is_new = |all: &[Value]| all.len() == 1 && contains(&all[0], &row.at_daemon);
    let held = site.until_allocations(&object, "the new one alone", is_new).await?;
    let field = if row.kind == CustomKind::MemoryBundle { "ffm_handle" } else { "corridor_id" };
    ensure(held[0][field] == handle_of(&moved, row.kind), || {
        format!("{} says {}, the daemon {held:?}", object.title(), moved["status"])
    })?;
    // It serves again.
    let again = format!("{}-again", object.name);
    bind_user(site, &object, "1", &again).await?;
    delete_pod(site.admin(), TEAM, &again).await
}

/// Looks as often as it can until the new one is there: there is always one.
async fn make_before_break(site: &Site, row: &Row, object: &Custom) -> Result<()> {
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let held = site.allocations_of(object).await?;
        ensure(!held.is_empty(), || {
            format!("{} was left without any allocation on its way", object.title())
        })?;
        if held.iter().any(|one| contains(one, &row.at_daemon)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let object = object.get().await?;
            return Err(Error::TimedOut {
                awaited: format!("another allocation, with {}", row.at_daemon),
                seconds: PATIENCE.as_secs(),
                seen: format!("{held:?} and the status {}", object["status"]),
            });
        }
        sleep(LOOK_EVERY).await;
    }
}

/// An object as the row needs it, its id, and its user if it is to be in use.
async fn start(site: &Site, row: &Row, in_use: bool) -> Result<(Custom, String, Option<String>)> {
    let (short, spec) = match row.kind {
        CustomKind::MemoryBundle => ("b", bundle_spec()),
        CustomKind::Corridor | CustomKind::AttestationPolicy => ("c", corridor_spec()),
    };
    let name = format!("{short}-{}-{}", row.name, if in_use { "used" } else { "idle" });
    let object = site.create(row.kind, TEAM, &name, spec).await?;
    let id = handle_of(&object.until_ready().await?, row.kind);
    if !in_use {
        return Ok((object, id, None));
    }
    let user = PodTemplate::small().refer(&object, Some("1"));
    user.create(site.admin(), TEAM, &name).await?;
    until_bound(&site.cluster, TEAM, &name).await?;
    object.until("in use", |it| it["status"]["inUse"] == 1).await?;
    Ok((object, id, Some(name)))
}

/// Whether all of these members are there with these values.
fn contains(found: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(field, value)| found[field] == *value)
}

/// What would lose data or trust is refused by the API server itself, in words.
pub async fn changes_that_are_refused(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let spec = with(bundle_spec(), json!({ "persistence": "durable", "securityDomain": "red" }));
    let bundle = site.create(CustomKind::MemoryBundle, TEAM, "b1", spec).await?;
    let before = bundle.until_ready().await?;
    for (patch, words) in [
        (json!({ "persistence": "none" }), "persistence cannot be changed"),
        (json!({ "securityDomain": "blue" }), "securityDomain cannot be changed"),
        (json!({ "shareable": false }), "shareable cannot be changed"),
        (json!({ "bytes": 1_u64 << 29 }), "cannot shrink"),
    ] {
        let refusal = bundle.patch_spec(patch.clone()).await;
        let Err(problem) = refusal else {
            return Err(Error::Violated(format!("{patch} should be refused, and is not")));
        };
        ensure(problem.api_code() == Some(422) && problem.to_string().contains(words), || {
            format!("{patch} should be refused with 422 and {words:?}: {problem}")
        })?;
    }
    let after = bundle.get().await?;
    ensure(after["spec"] == before["spec"], || format!("it was changed: {}", after["spec"]))?;
    // Growing loses nothing.
    bundle.patch_spec(json!({ "bytes": 2_u64 << 30 })).await?;
    let grown = |all: &[Value]| all.len() == 1 && all[0]["bytes"] == 2_u64 << 30;
    site.until_allocations(&bundle, "grown", grown).await.map(drop)
}

/// What a spec leaves out again is the daemon's own choice again: removed fields do not linger.
pub async fn removed_fields_do_not_linger(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let tuned = json!({
        "qos": { "pfc": true, "priority": "gold" },
        "recalibration": { "targetBer": 1e-9, "ambientProfile": "lab-default" },
    });
    let spec = with(corridor_spec(), tuned);
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", spec).await?;
    let id = handle_of(&corridor.until_ready().await?, CustomKind::Corridor);
    let patched = corridor.patch_spec(json!({ "qos": null, "recalibration": null })).await?;
    let generation = &patched["metadata"]["generation"];
    let now = corridor.until("Ready with its new spec", |it| is_followed(it, generation)).await?;
    ensure(handle_of(&now, CustomKind::Corridor) == id, || "in place, yet the id changed".into())?;
    let plain = |all: &[Value]| {
        let is_default = |path: &Value| {
            path["qos"]["pfc"] != true
                && path["qos"]["priority"].is_null()
                && path["recalibration"]["ambient_profile"].is_null()
        };
        all.len() == 1 && all.iter().all(is_default)
    };
    let outcome = site.until_allocations_within(
        Duration::from_secs(10),
        &corridor,
        "without qos and recalibration",
        plain,
    );
    outcome.await.map(drop)
}
