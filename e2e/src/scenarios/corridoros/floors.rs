//! A floor that is not met: one fall, whatever the noise, and no new Pod until it is over.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::interval;

use super::{TEAM, bind_user, bundle_spec, ensure_contains, site, until_bound, until_held, with};
use super::{corridor_spec, create_corridor, ensure_told};
use crate::cluster::Cluster;
use crate::error::{Result, ensure};
use crate::objects::custom::{Custom, CustomKind, condition, handle_of, is_true};
use crate::objects::history::History;
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::observe::PATIENCE;
use crate::site::{Site, SiteOptions};

/// Long enough for the regular samples of the daemons, which come every 10 s, to be among the noise.
const NOISY_READINGS: u32 = 50;
const NOISE_EVERY: Duration = Duration::from_millis(220);
/// The fall, a reading or two (at most one in 30 s), and what the scheduler says about its users.
const DEGRADED_VERSIONS_MAX: usize = 8;

/// corrd loses capacity: however its readings move below the floor, the Corridor goes Degraded
/// exactly once; a new Pod is held with the deficit in its condition, the old one stays. Capacity
/// returns: the Pod is bound.
pub async fn capacity_falls_and_returns(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let history = History::start(site.admin(), CustomKind::Corridor, TEAM).await?;
    let corridor = create_corridor(&site, "c1").await?;
    let id = handle_of(&corridor.until_ready().await?, CustomKind::Corridor);
    bind_user(&site, &corridor, "60", "holder").await?;

    site.daemons.force_corridor(&id, json!({ "achievable_gbps": 40 })).await?;
    corridor.until_not_ready("BelowFloor", &["40", "100"]).await?;
    corridor.until_phase("Degraded").await?;
    let forty = PodTemplate::small().refer(&corridor, Some("40"));
    forty.create(site.admin(), TEAM, "late").await?;
    let message = until_held(cluster, TEAM, "late").await?;
    ensure_contains(
        &message,
        &["0/3 nodes are available: corridor team-a/c1 (Degraded): needs 40 Gbps", "short by 40"],
    )?;
    let oversubscribed = |object: &Value| is_true(object, "Oversubscribed");
    corridor.until("Oversubscribed by its holder", oversubscribed).await?;
    let words = "Pods have reserved more than its floor is now";
    ensure_told(&site, &corridor, "Oversubscribed", "Warning", &[words]).await?;
    make_noise(&site, &id).await?;

    site.daemons.force_corridor(&id, json!({})).await?;
    until_bound(cluster, TEAM, "late").await?;
    corridor.until_ready().await?;
    let phases = history.phases(&corridor.uid);
    let once = phases.iter().filter(|phase| *phase == "Degraded").count() == 1;
    ensure(once && phases.last().is_some_and(|phase| phase == "Ready"), || {
        format!("the Corridor should go Degraded exactly once, but went {phases:?}")
    })?;
    for words in ["Degraded", "Ready"] {
        site.until_event_saying(&corridor, &[words]).await?;
    }
    ensure_same_id(&history, &corridor, &id)?;
    ensure_quiet(&history, &corridor)?;
    ensure_times_of_transitions(&history, &corridor)
}

/// Readings that jump about below the floor, and bit errors too.
async fn make_noise(site: &Site, id: &str) -> Result<()> {
    let mut ticks = interval(NOISE_EVERY);
    for number in 0..NOISY_READINGS {
        ticks.tick().await;
        let gbps = 99.9 - f64::from(number % 7) * 13.7;
        let readings = json!({ "achievable_gbps": gbps, "ber_drift_decades": number % 3 });
        site.daemons.force_corridor(id, readings).await?;
    }
    Ok(())
}

/// Moves on one side of the floor are for the metrics: the status is not written for each.
fn ensure_quiet(history: &History, corridor: &Custom) -> Result<()> {
    let versions = history.of(&corridor.uid);
    let fallen = versions.iter().filter(|version| version["status"]["phase"] == "Degraded").count();
    ensure(fallen <= DEGRADED_VERSIONS_MAX, || {
        format!("{NOISY_READINGS} readings on one side of the floor led to {fallen} versions")
    })
}

/// `lastTransitionTime` moves with the status of its condition, and never without.
fn ensure_times_of_transitions(history: &History, corridor: &Custom) -> Result<()> {
    let versions = history.of(&corridor.uid);
    for (before, after) in versions.iter().zip(versions.iter().skip(1)) {
        for name in ["Ready", "Attested", "UpdatePending", "InUse", "Oversubscribed"] {
            let (old, new) = (condition(before, name), condition(after, name));
            let is_same = old["status"] == new["status"];
            let is_same_time = old["lastTransitionTime"] == new["lastTransitionTime"];
            ensure(old.is_null() || !is_same || is_same_time, || {
                format!("{name} kept its status, but not its lastTransitionTime: {old} {new}")
            })?;
        }
    }
    Ok(())
}

fn ensure_same_id(history: &History, corridor: &Custom, id: &str) -> Result<()> {
    let versions = history.of(&corridor.uid);
    let ids = versions.iter().filter_map(|version| version["status"]["corridorId"].as_str());
    let others: Vec<_> = ids.filter(|found| *found != id).collect();
    ensure(others.is_empty(), || format!("a fall must not change {id} to {others:?}"))
}

/// The same of a MemoryBundle: below its floor it takes no new Pod, and its violation is counted.
pub async fn bundle_falls_below_its_floor(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let bundle = site.create(CustomKind::MemoryBundle, TEAM, "b1", bundle_spec()).await?;
    let handle = handle_of(&bundle.until_ready().await?, CustomKind::MemoryBundle);
    site.daemons.force_bundle(&handle, json!({ "achieved_GBs": 4 })).await?;
    bundle.until_not_ready("BelowFloor", &["4", "8"]).await?;
    let two = PodTemplate::small().refer(&bundle, Some("2"));
    two.create(site.admin(), TEAM, "late").await?;
    let message = until_held(cluster, TEAM, "late").await?;
    ensure_contains(&message, &["memory bundle team-a/b1 (Degraded): needs 2 GB/s", "short by 2"])?;
    site.daemons.force_bundle(&handle, json!({})).await?;
    until_bound(cluster, TEAM, "late").await.map(drop)
}

/// What physics forbids is refused with its reason and leaves nothing in corrd; a feasible spec
/// heals it. A path that measures slower than its budget is Degraded until it is fast again.
pub async fn reach_and_latency_are_enforced(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let cases = [
        ("slow", json!({ "latencyBudgetNs": 2 }), json!({ "latencyBudgetNs": 1000 }), "budget"),
        ("far", json!({ "reachMm": 99_000_000 }), json!({ "reachMm": 1000 }), "reaches"),
    ];
    let mut healed = Vec::new();
    for (name, infeasible, feasible, why) in cases {
        let spec = with(corridor_spec(), infeasible);
        let corridor = site.create(CustomKind::Corridor, TEAM, name, spec).await?;
        let refused = corridor.until_not_ready("AllocationRefused", &[why]).await?;
        ensure(refused["status"]["phase"] == "Failed", || {
            format!("a refused Corridor is {}, not Failed", refused["status"]["phase"])
        })?;
        site.until_event_saying(&corridor, &[why]).await?;
        let held = site.allocations_of(&corridor).await?;
        ensure(held.is_empty(), || format!("corrd refused it and still has {held:?}"))?;
        corridor.patch_spec(feasible).await?;
        corridor.until_ready().await?;
        healed.push(corridor);
    }
    let [slow, _] = healed.as_slice() else { unreachable!("there are two cases") };
    let id = slow.handle().await?;
    site.daemons.force_corridor(&id, json!({ "latency_ns": 2000 })).await?;
    let degraded = slow.until_not_ready("LatencyOverBudget", &["2000", "1000"]).await?;
    ensure(degraded["status"]["phase"] == "Degraded", || {
        format!("over its budget it is {}, not Degraded", degraded["status"]["phase"])
    })?;
    let user = PodTemplate::small().refer(slow, Some("1"));
    user.create(site.admin(), TEAM, "late").await?;
    until_held(cluster, TEAM, "late").await?;
    site.daemons.force_corridor(&id, json!({})).await?;
    until_bound(cluster, TEAM, "late").await?;
    delete_pod(site.admin(), TEAM, "late").await
}

/// What shapes a path reaches corrd with the allocation: `qos` and `ambientProfile` among it.
pub async fn whole_spec_reaches_the_daemons(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let spec = json!({
        "type": "CarbonCorridor",
        "lanes": 2,
        "lambdaNm": [1310],
        "minGbps": 50,
        "latencyBudgetNs": 100_000,
        "reachMm": 500,
        "mode": "free-space",
        "qos": { "pfc": true, "priority": "gold" },
        "attestationRequired": false,
        "recalibration": { "targetBer": 1e-9, "ambientProfile": "lab-default" },
    });
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", spec).await?;
    corridor.until_ready().await?;
    let path = &site.until_allocations(&corridor, "one", |all| all.len() == 1).await?[0];
    let expected = json!({
        "type": "CarbonCorridor",
        "lanes": 2,
        "lambda_nm": [1310],
        "min_gbps": 50,
        "latency_budget_ns": 100_000,
        "reach_mm": 500,
        "mode": "free-space",
        "qos": { "pfc": true, "priority": "gold" },
        "recalibration": { "target_ber": 1e-9, "ambient_profile": "lab-default" },
        "owner": site.owner_of(&corridor),
    });
    ensure_fields(path, &expected)?;

    let spec = with(
        bundle_spec(),
        json!({ "persistence": "durable", "securityDomain": "red", "latencyClass": "T3" }),
    );
    let bundle = site.create(CustomKind::MemoryBundle, TEAM, "b1", spec).await?;
    bundle.until_ready().await?;
    let memory = &site.until_allocations(&bundle, "one", |all| all.len() == 1).await?[0];
    let expected = json!({
        "bytes": 1_u64 << 30,
        "latency_class": "T3",
        "floor_GBs": 8,
        "persistence": "durable",
        "shareable": true,
        "security_domain": "red",
        "owner": site.owner_of(&bundle),
    });
    ensure_fields(memory, &expected)
}

fn ensure_fields(found: &Value, expected: &Value) -> Result<()> {
    for (field, value) in expected.as_object().into_iter().flatten() {
        ensure(found[field] == *value, || {
            format!("the daemon has {field} = {}, not {value}, in {found}", found[field])
        })?;
    }
    Ok(())
}

/// Bit errors that drift are met by a recalibration, once, and never by a fall; jitter inside the
/// band causes nothing at all.
pub async fn drift_is_met_by_recalibration(cluster: &Cluster) -> Result<()> {
    // Longer than the 10 s between two samples: a cure must have time to show.
    let settings = json!({
        "ber": { "dwellSeconds": 14, "recalibrationIntervalSeconds": 60 },
        "telemetry": { "statusIntervalSeconds": 1 },
    });
    let site = site(cluster, SiteOptions { settings, ..SiteOptions::default() }).await?;
    let history = History::start(site.admin(), CustomKind::Corridor, TEAM).await?;
    let spec = with(corridor_spec(), json!({ "recalibration": { "targetBer": 1e-12 } }));
    let corridor = site.create(CustomKind::Corridor, TEAM, "c1", spec).await?;
    let id = handle_of(&corridor.until_ready().await?, CustomKind::Corridor);
    let count = async |reason: &str| {
        let metrics = site.scheduler.metrics().await?;
        let labels = [("namespace", TEAM), ("corridor", "c1"), ("reason", reason)];
        let value = super::happy::sample(&metrics, "corridor_recalibrations_total", &labels);
        Result::Ok(value.unwrap_or(0.0))
    };
    ensure(count("ber_drift").await? == 0.0, || "it was recalibrated without need".into())?;
    site.daemons.force_corridor(&id, json!({ "ber_drift_decades": 4 })).await?;
    let drifts = "corridor_recalibrations_total to count the drift";
    super::happy::until_series(&site, drifts, |metrics| {
        let labels = [("namespace", TEAM), ("corridor", "c1"), ("reason", "ber_drift")];
        super::happy::sample(metrics, "corridor_recalibrations_total", &labels) == Some(1.0)
    })
    .await?;
    let versions = history.of(&corridor.uid);
    let phases = history.phases(&corridor.uid);
    ensure(!phases.contains(&"Degraded".to_owned()), || {
        format!("a drift that HELIOPASS can cure went through {phases:?}: {versions:?}")
    })?;
    let awaited = "calm again";
    let calm =
        |object: &Value| object["status"]["telemetry"]["ber"].as_f64().unwrap_or(1.0) < 1e-12;
    corridor.until_within(PATIENCE, awaited, calm).await.map(drop)
}
