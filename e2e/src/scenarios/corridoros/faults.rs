//! Daemons that fail: never a leak, never a path of another owner, and clear messages.

use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    TEAM, bind_user, bundle_spec, corridor_spec, create_bundle, create_corridor, site, until_bound,
    until_held, with,
};
use crate::cluster::Cluster;
use crate::error::{Error, Result, ensure};
use crate::objects::custom::{Custom, CustomKind, handle_of};
use crate::objects::pods::{PodTemplate, delete_pod};
use crate::site::{Site, SiteOptions};

/// More failures than any test waits for.
const ALWAYS: u32 = 1000;
/// Longer than anybody waits for a reply, and the call is carried out all the same.
const TOO_SLOW: Duration = Duration::from_secs(7);

const ALLOCATE: [&str; 2] = ["POST /v1/corridors", "POST /v1/ffm/alloc"];
const RELEASE: [&str; 2] = ["DELETE /v1/corridors/{id}", "DELETE /v1/ffm/{handle}"];

/// The daemons stop listening: a Ready object says so after its freshness is over and takes no new Pods,
/// a new object waits. The daemons are back with their state: the same ids, one allocation each, nothing
/// lost.
pub async fn daemons_away_and_back(cluster: &Cluster) -> Result<()> {
    let mut site = site(cluster, SiteOptions::default()).await?;
    let old = create_corridor(&site, "old").await?;
    let id = handle_of(&old.until_ready().await?, CustomKind::Corridor);
    bind_user(&site, &old, "10", "user").await?;

    site.daemons.kill9().await?;
    let new = create_corridor(&site, "new").await?;
    let url = site.daemons.url();
    let words = ["cannot connect to", url.as_str()];
    let waiting = new.until_not_ready("BackendUnreachable", &words).await?;
    ensure(waiting["status"]["phase"] == "Pending", || {
        format!("without corrd a new Corridor is {}, not Pending", waiting["status"]["phase"])
    })?;
    let stale = old.until_not_ready("BackendUnreachable", &words).await?;
    ensure(stale["status"]["phase"] == "Degraded", || {
        format!("without corrd an old Corridor is {}, not Degraded", stale["status"]["phase"])
    })?;
    ensure(handle_of(&stale, CustomKind::Corridor) == id, || {
        "an unreachable daemon is no reason to forget an id".into()
    })?;
    let ten = PodTemplate::small().refer(&old, Some("10"));
    ten.create(site.admin(), TEAM, "late").await?;
    until_held(cluster, TEAM, "late").await?;

    site.daemons.start_again().await?;
    let again = old.until_ready().await?;
    ensure(handle_of(&again, CustomKind::Corridor) == id, || {
        format!("the id was {id}, and is {} after a restart", again["status"]["corridorId"])
    })?;
    until_bound(cluster, TEAM, "late").await?;
    new.until_ready().await?;
    for object in [&old, &new] {
        ensure_one_allocation(&site, object).await?;
    }
    Ok(())
}

/// Every way in which an allocation can go wrong ends with one allocation, and the object Ready.
pub async fn faulty_allocation_leaks_nothing(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    for kind in ["lost_reply", "garbage", "http_5xx"] {
        for route in ALLOCATE {
            site.daemons.order_fault(kind, route, 2).await?;
        }
        let name = kind.replace('_', "-");
        let pair = [create_corridor(&site, &name).await?, create_bundle(&site, &name).await?];
        for object in &pair {
            object.until_ready().await?;
            ensure_one_allocation(&site, object).await?;
        }
    }
    ensure_says_what_fails(&site).await?;
    for route in ALLOCATE {
        site.daemons.order_delay(route, 1, TOO_SLOW).await?;
    }
    let slow = [create_corridor(&site, "slow").await?, create_bundle(&site, "slow").await?];
    for object in &slow {
        object.until_ready().await?;
        ensure_one_allocation(&site, object).await?;
    }
    Ok(())
}

/// While it fails: the reason for programs, the daemon's own words for people, and an Event.
async fn ensure_says_what_fails(site: &Site) -> Result<()> {
    for route in ALLOCATE {
        site.daemons.order_fault("http_5xx", route, ALWAYS).await?;
    }
    let pair = [create_corridor(site, "failing").await?, create_bundle(site, "failing").await?];
    for object in &pair {
        let words = "ordered by a test";
        let failing = object.until_not_ready("BackendUnreachable", &[words]).await?;
        ensure(failing["status"]["phase"] != "Ready", || "it cannot be Ready".into())?;
        site.until_event_saying(object, &[words]).await?;
    }
    site.daemons.clear_faults().await?;
    for object in &pair {
        object.until_ready().await?;
        ensure_one_allocation(site, object).await?;
    }
    Ok(())
}

/// Every way in which a release can go wrong ends with the object gone and nothing in the daemons.
pub async fn faulty_release_leaks_nothing(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let mut pairs = Vec::new();
    for kind in ["lost_reply", "garbage", "http_5xx"] {
        let name = kind.replace('_', "-");
        let pair = [create_corridor(&site, &name).await?, create_bundle(&site, &name).await?];
        pairs.push((kind, pair));
    }
    for (kind, pair) in &pairs {
        for object in pair {
            object.until_ready().await?;
        }
        for route in RELEASE {
            site.daemons.order_fault(kind, route, 4).await?;
        }
        for object in pair {
            object.delete().await?;
        }
        for object in pair {
            object.until_gone().await?;
        }
        site.daemons.clear_faults().await?;
    }
    site.ensure_nothing_left().await
}

async fn ensure_one_allocation(site: &Site, object: &Custom) -> Result<()> {
    let seen = object.get().await?;
    let held = site.allocations_of(object).await?;
    let field = if object.kind == CustomKind::MemoryBundle { "ffm_handle" } else { "corridor_id" };
    let is_it = held.len() == 1 && held[0][field] == handle_of(&seen, object.kind);
    ensure(is_it, || format!("{} has {}, the daemon {held:?}", object.title(), seen["status"]))
}

/// Readings that are no numbers count as no bandwidth, whatever they are, and are over when numbers
/// come again.
pub async fn readings_that_are_no_numbers(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions { meddled: true, ..SiteOptions::default() }).await?;
    let Some(meddler) = &site.meddler else { unreachable!("it was asked for") };
    let pair = [create_corridor(&site, "c1").await?, create_bundle(&site, "b1").await?];
    let mut ids = Vec::new();
    for object in &pair {
        ids.push(handle_of(&object.until_ready().await?, object.kind));
    }
    for (gbps, gbs) in [("\"NaN\"", "null"), ("-5", "\"Infinity\""), ("null", "\"NaN\"")] {
        meddler.rewrite("achievable_gbps", gbps);
        meddler.rewrite("achieved_GBs", gbs);
        // What crosses a floor is told at once, and arrives as nonsense.
        site.daemons.force_corridor(&ids[0], json!({ "achievable_gbps": 99 })).await?;
        site.daemons.force_bundle(&ids[1], json!({ "achieved_GBs": 7 })).await?;
        pair[0].until_not_ready("BelowFloor", &["0 of 100 Gbps"]).await?;
        pair[1].until_not_ready("BelowFloor", &["0 of 8 GB/s"]).await?;
        meddler.relent();
        site.daemons.force_corridor(&ids[0], json!({})).await?;
        site.daemons.force_bundle(&ids[1], json!({})).await?;
        for object in &pair {
            object.until_ready().await?;
            ensure_one_allocation(&site, object).await?;
        }
    }
    Ok(())
}

/// corrd restarts without state, and gives the ids to others. No path of others is taken for ours: the
/// Corridor gets a new path, and neither it nor a deletion touches the other's.
pub async fn reused_ids_are_not_ours(cluster: &Cluster) -> Result<()> {
    let mut site = site(cluster, SiteOptions::default()).await?;
    let kept = create_corridor(&site, "kept").await?;
    let kept_id = handle_of(&kept.until_ready().await?, CustomKind::Corridor);
    let deleted = create_corridor(&site, "deleted").await?;
    let deleted_id = handle_of(&deleted.until_ready().await?, CustomKind::Corridor);
    // The scheduler must not allocate anew before the ids are given away.
    site.scheduler.kill9_in_place().await?;
    deleted.delete().await?;
    site.daemons.lose_state().await?;
    let mut others = Vec::new();
    for number in 0..4 {
        let (owner, key) = (format!("other/{number}"), format!("{number}:0123456789abcdef"));
        others.push(site.daemons.allocate_for(&owner, &key).await?);
    }
    for id in [&kept_id, &deleted_id] {
        ensure(others.iter().any(|other| other["corridor_id"] == **id), || {
            format!("this story needs {id} to be given away again: {others:?}")
        })?;
    }

    site.restart_scheduler().await?;
    deleted.until_gone().await?;
    let is_anew = |it: &Value| {
        it["status"]["phase"] == "Ready" && handle_of(it, CustomKind::Corridor) != kept_id
    };
    kept.until("Ready with an id of its own", is_anew).await?;
    ensure_one_allocation(&site, &kept).await?;
    bind_user(&site, &kept, "10", "user").await?;
    delete_pod(site.admin(), TEAM, "user").await?;
    kept.delete().await?;
    kept.until_gone().await?;
    let left = site.daemons.corridors("other/").await?;
    ensure(left == others || left.len() == others.len(), || {
        format!("the others had {others:?}, and are left with {left:?}")
    })?;
    site.ensure_nothing_left().await
}

/// memqosd loses its state: a durable bundle keeps its handle, another one gets a new one.
pub async fn durable_bundles_survive_a_restart(cluster: &Cluster) -> Result<()> {
    let site = site(cluster, SiteOptions::default()).await?;
    let create = async |name: &str, persistence: &str| {
        let spec = with(bundle_spec(), json!({ "persistence": persistence }));
        site.create(CustomKind::MemoryBundle, TEAM, name, spec).await
    };
    // The durable one comes second, so that the other cannot get its old handle back by counting.
    let (fleeting, durable) =
        (create("fleeting", "none").await?, create("durable", "durable").await?);
    let mut handles = Vec::new();
    for bundle in [&fleeting, &durable] {
        handles.push(handle_of(&bundle.until_ready().await?, CustomKind::MemoryBundle));
    }
    let lost = site.allocations_of(&fleeting).await?;
    site.daemons.lose_state().await?;
    let is_new = |all: &[Value]| {
        all.len() == 1 && lost.len() == 1 && all[0]["created_at"] != lost[0]["created_at"]
    };
    site.until_allocations(&fleeting, "made anew", is_new).await?;
    for bundle in [&fleeting, &durable] {
        bundle.until_ready().await?;
        ensure_one_allocation(&site, bundle).await?;
    }
    let handle = durable.handle().await?;
    ensure(handle == handles[1], || {
        format!("a durable bundle had {}, and has {handle} after a restart", handles[1])
    })
}

/// Leases are renewed well before they end: with leases of a few seconds nothing is ever lost.
pub async fn leases_are_renewed(cluster: &Cluster) -> Result<()> {
    const LEASE_SECONDS: u64 = 6;
    let daemons = vec!["--lease-ttl-seconds".to_owned(), LEASE_SECONDS.to_string()];
    let site = site(cluster, SiteOptions { daemons, ..SiteOptions::default() }).await?;
    let pair = [create_corridor(&site, "c1").await?, create_bundle(&site, "b1").await?];
    let firsts = try_join_all(pair.iter().map(async |object| {
        object.until_ready().await?;
        let held = site.allocations_of(object).await?;
        held.into_iter().next().ok_or_else(|| Error::Violated("Ready with nothing held".into()))
    }))
    .await?;
    for (object, first) in pair.iter().zip(&firsts) {
        let renewed_twice = |all: &[Value]| {
            let end = |it: &Value| {
                it["lease_expires_at"]
                    .as_str()
                    .and_then(|text| text.parse::<jiff::Timestamp>().ok())
            };
            let (Some(held), Some(before)) = (all.first().and_then(end), end(first)) else {
                return false;
            };
            held.duration_since(before).as_secs() >= i64::try_from(LEASE_SECONDS).unwrap_or(0)
        };
        let renewed =
            site.until_allocations(object, "renewed beyond the first lease", renewed_twice).await?;
        ensure(renewed[0]["created_at"] == first["created_at"], || {
            format!("{} lost {first} and has {renewed:?}", object.title())
        })?;
        ensure_one_allocation(&site, object).await?;
    }
    Ok(())
}

/// An allocation whose object was removed by force is swept; those of live objects and of others are
/// never touched.
pub async fn orphans_are_swept(cluster: &Cluster) -> Result<()> {
    let settings = json!({ "sweepIntervalSeconds": 1 });
    let options = SiteOptions { settings, tampered: true, ..SiteOptions::default() };
    let site = site(cluster, options).await?;
    let live = site.create(CustomKind::Corridor, TEAM, "live", corridor_spec()).await?;
    let live_id = handle_of(&live.until_ready().await?, CustomKind::Corridor);
    let other = site.daemons.allocate_for("other/1", "1:0123456789abcdef").await?;
    let orphans = [create_corridor(&site, "orphan").await?, create_bundle(&site, "orphan").await?];
    for object in &orphans {
        object.until_ready().await?;
        // In use, so that the deletion waits and leaves the time to take the finalizer away.
        bind_user(&site, object, "1", &format!("user-{}", object.kind.name().to_lowercase()))
            .await?;
        object.delete().await?;
        object.until_phase("Releasing").await?;
        object.strip_finalizers().await?;
        object.until_gone().await?;
    }
    for object in &orphans {
        site.until_allocations(object, "swept", <[Value]>::is_empty).await?;
    }
    ensure_one_allocation(&site, &live).await?;
    ensure(live.handle().await? == live_id, || "a live owner keeps its id".into())?;
    let others = site.daemons.corridors("other/").await?;
    ensure(others.len() == 1 && others[0]["corridor_id"] == other["corridor_id"], || {
        format!("another cluster's path was touched: {others:?}")
    })
}
