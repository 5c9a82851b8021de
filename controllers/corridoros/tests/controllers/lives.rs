//! Lives of objects, from their creation to their end, and what befalls them in between.

use std::time::Duration;

use crds::{CORRIDOR_FINALIZER, Phase};
use daemons::simulated::SimulatedConfig;
use serde_json::json;

use crate::world::{World, ready_reason};

#[tokio::test(flavor = "multi_thread")]
async fn a_corridor_becomes_ready_with_finalizer_handle_ticket_and_fresh_lease() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", true).await;
    let corridor = world.phase("c", Phase::Ready).await;
    let status = corridor.status.clone().unwrap();
    assert_eq!(corridor.metadata.finalizers.as_deref(), Some(&[CORRIDOR_FINALIZER.into()][..]));
    assert_eq!(status.floor_gbps, Some(100.0));
    assert_eq!(status.observed_generation, corridor.metadata.generation);
    assert!(status.attestation_expires_at.is_some());
    assert!(crds::condition::is_true(&status.conditions, crds::condition::ATTESTED));
    let allocations = world.allocations().await;
    assert_eq!(allocations.len(), 1);
    assert_eq!(status.corridor_id.as_deref(), Some(allocations[0].corridor_id.as_str()));
    world.lease_is_fresh(crds::backend_lease::CORRD).await;
    world.lease_is_fresh(crds::backend_lease::ATTESTD).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capacity_drop_degrades_once_and_its_return_makes_ready_again() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    let corridor = world.phase("c", Phase::Ready).await;
    let id = corridor.status.unwrap().corridor_id.unwrap();
    world.admin("PUT", &format!("/admin/corridors/{id}"), &json!({"achievable_gbps": 40})).await;
    let degraded = world.phase("c", Phase::Degraded).await;
    assert_eq!(ready_reason(&degraded), "BelowFloor");
    assert_eq!(degraded.status.unwrap().achievable_gbps, Some(40.0));
    let quiet = world.writes("corridors");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.writes("corridors"), quiet, "written once, then quiet");
    world.admin("PUT", &format!("/admin/corridors/{id}"), &json!({})).await;
    world.phase("c", Phase::Ready).await;
    world.until("told", async || world.events("Ready").await == 2).await;
    assert_eq!(world.events("BelowFloor").await, 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_waits_for_the_scheduler_and_then_releases() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    world.delete_corridor("c").await;
    world.phase("c", Phase::Releasing).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(world.allocations().await.len(), 1, "nobody has said that it is drained");
    world.drain("c").await;
    world.corridor_gone("c").await;
    assert_eq!(world.allocations().await.len(), 0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn force_release_does_not_wait() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    world.annotate("c", crds::annotations::FORCE_RELEASE, "true").await;
    world.delete_corridor("c").await;
    world.corridor_gone("c").await;
    assert_eq!(world.allocations().await.len(), 0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_reply_leads_to_one_allocation() {
    let world = World::new().await;
    let fault = json!({"kind": "lost_reply", "route": "POST /v1/corridors", "count": 5});
    world.admin("POST", "/admin/faults", &fault).await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    assert_eq!(world.allocations().await.len(), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_write_leaves_one_allocation_and_ends_ready() {
    let world = World::new().await;
    for step in 1..=6 {
        let name = format!("c{step}");
        let before = world.writes("corridors");
        let running = world.run();
        world.create_corridor(&name, true).await;
        world.write_count("corridors", before + 1 + step).await;
        running.crash().await;
        let running = world.run();
        let corridor = world.phase(&name, Phase::Ready).await;
        let uid = corridor.metadata.uid.unwrap();
        let mut allocations = world.allocations().await;
        allocations.retain(|it| it.owner.object_uid() == uid);
        assert_eq!(allocations.len(), 1, "crash after write {step}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_allocated_past_a_policy_that_the_watch_has_not_shown_yet() {
    let world = World::new().await;
    let running = world.run_behind_policies();
    world.create_corridor("earlier", false).await;
    world.phase("earlier", Phase::Ready).await;
    world.create_policy("strict", &json!({"requiredClaims": {"secureBoot": "true"}})).await;
    world.create_corridor("c", false).await;
    let is_prepared = |it: &crds::Corridor| it.metadata.finalizers.is_some();
    world.corridor_until("c", "it is about to be allocated", is_prepared).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.allocations().await.len(), 1, "only the earlier one's");
    running.stop().await;
    let running = world.run();
    let uid = world.phase("c", Phase::Ready).await.metadata.uid.unwrap();
    let mut allocations = world.allocations().await;
    allocations.retain(|it| it.owner.object_uid() == uid);
    assert!(allocations.iter().all(|it| it.path.device_id.is_some()), "on an attested device");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_of_another_owner_is_never_released() {
    let world = World::new().await;
    let foreign = world.allocate_for("another-cluster", "another-object").await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    // A forged status points to somebody else's path.
    running.stop().await;
    world.forge_id("c", &foreign).await;
    world.delete_corridor("c").await;
    world.drain("c").await;
    let running = world.run();
    world.corridor_gone("c").await;
    let left = world.allocations().await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].corridor_id, foreign);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_swept_and_live_owners_are_not() {
    let world = World::new().await;
    world.allocate_for(&world.cluster_uid().await, "gone-object").await;
    world.allocate_for("another-cluster", "another-object").await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    world.until("the orphan is swept", async || world.allocations().await.len() == 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.allocations().await.len(), 2, "its own and another cluster's");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_backend_is_said_and_its_return_too() {
    let mut world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    world.stop_daemons().await;
    let lost = world.phase("c", Phase::Degraded).await;
    assert_eq!(ready_reason(&lost), "BackendUnreachable");
    assert!(lost.status.unwrap().corridor_id.is_some(), "the handle stays known");
    let renewed = world.lease_renewal(crds::backend_lease::CORRD).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let later = world.lease_renewal(crds::backend_lease::CORRD).await;
    assert_eq!(renewed, later, "nothing flows, so nothing is fresh");
    world.start_daemons().await;
    world.phase("c", Phase::Ready).await;
    assert_eq!(world.allocations().await.len(), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_backends_nothing_is_invented() {
    let world = World::new().await;
    let running = world.run_without_backends();
    world.create_corridor("c", true).await;
    let corridor = world.phase("c", Phase::Pending).await;
    assert_eq!(ready_reason(&corridor), "BackendNotConfigured");
    assert_eq!(corridor.metadata.finalizers, None);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn specs_are_followed_in_place_or_by_another_path() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    let first = world.phase("c", Phase::Ready).await.status.unwrap().corridor_id;
    world.edit("c", &json!({"minGbps": 150})).await;
    world
        .corridor_until("c", "the floor follows", |it| {
            it.status.as_ref().is_some_and(|it| it.floor_gbps == Some(150.0))
        })
        .await;
    let raised = world.phase("c", Phase::Ready).await.status.unwrap();
    assert_eq!(raised.corridor_id, first);
    let fallen = world.events("BelowFloor").await;
    assert_eq!(fallen, 0, "a sample from before the change is not held against the new floor");
    // In use: waits.
    world.set_in_use("c", 1).await;
    world.edit("c", &json!({"reachMm": 75})).await;
    world
        .corridor_until("c", "the change waits", |it| {
            let conditions = it.status.as_ref().map(|it| it.conditions.clone()).unwrap_or_default();
            crds::condition::is_true(&conditions, crds::condition::UPDATE_PENDING)
        })
        .await;
    assert_eq!(world.phase("c", Phase::Ready).await.status.unwrap().corridor_id, first);
    world.set_in_use("c", 0).await;
    world
        .corridor_until("c", "another path", |it| {
            it.status.as_ref().is_some_and(|status| {
                status.corridor_id != first && status.phase == Some(Phase::Ready)
            })
        })
        .await;
    assert_eq!(world.allocations().await.len(), 1, "the former one is released");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_no_device_meets_denies_and_its_end_allows() {
    let world = World::new().await;
    let running = world.run();
    world.create_policy("strict", &json!({"requiredClaims": {"secureBoot": "never"}})).await;
    world.create_corridor("c", false).await;
    let denied = world.phase("c", Phase::Failed).await;
    assert_eq!(ready_reason(&denied), "AttestationFailed");
    assert_eq!(world.allocations().await.len(), 0);
    world.policy_enforced("strict").await;
    world.delete_policy("strict").await;
    world.phase("c", Phase::Ready).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_lives_the_same_life() {
    let world = World::new().await;
    let running = world.run();
    world.create_bundle("b", 10).await;
    let bundle = world.bundle_phase("b", Phase::Ready).await;
    let handle = bundle.status.unwrap().ffm_handle.unwrap();
    world.admin("PUT", &format!("/admin/ffm/{handle}"), &json!({"achieved_GBs": 4})).await;
    world.bundle_phase("b", Phase::Degraded).await;
    world.admin("PUT", &format!("/admin/ffm/{handle}"), &json!({})).await;
    world.bundle_phase("b", Phase::Ready).await;
    world.edit_bundle("b", &json!({"bandwidthFloorGBs": 20, "latencyClass": "T0"})).await;
    world
        .bundle_until("b", "floor and tier follow", |it| {
            it.status.as_ref().is_some_and(|it| {
                it.floor_gbs == Some(20.0) && it.moved_pages.unwrap_or_default() > 0
            })
        })
        .await;
    world.delete_bundle_drained("b").await;
    world.until("the bundle is released", async || world.bundles().await.is_empty()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_during_the_end_leaves_nothing_behind() {
    let world = World::new().await;
    for step in 1..=3 {
        let name = format!("c{step}");
        let running = world.run();
        world.create_corridor(&name, false).await;
        world.phase(&name, Phase::Ready).await;
        let before = world.writes("corridors");
        world.delete_corridor(&name).await;
        world.drain(&name).await;
        world.write_count("corridors", before + 1 + step).await;
        running.crash().await;
        let running = world.run();
        world.corridor_gone(&name).await;
        assert_eq!(world.allocations().await.len(), 0, "crash after write {step}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_lost_its_state_is_asked_again() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("c", false).await;
    world.phase("c", Phase::Ready).await;
    let first = world.allocations().await[0].created_at;
    world.admin("POST", "/admin/restart", &json!({"keep_state": false})).await;
    world
        .until("another allocation", async || {
            let all = world.allocations().await;
            all.len() == 1 && all[0].created_at > first
        })
        .await;
    let corridor = world.phase("c", Phase::Ready).await;
    let id = world.allocations().await[0].corridor_id.clone();
    assert_eq!(corridor.status.unwrap().corridor_id, Some(id));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_are_renewed_and_an_expired_one_denies_changes_but_not_the_end() {
    let config = SimulatedConfig { ticket_ttl: Duration::from_secs(3), ..Default::default() };
    let world = World::with(config).await;
    let running = world.run();
    world.create_corridor("c", true).await;
    let expiry = |it: &crds::Corridor| it.status.clone().unwrap().attestation_expires_at;
    let first = expiry(&world.phase("c", Phase::Ready).await);
    let renewed = world.corridor_until("c", "renewed", |it| expiry(it) > first).await;
    assert_eq!(renewed.phase(), Phase::Ready);
    let fault = json!({"kind": "http_5xx", "route": "POST /v1/attest/verify", "count": 10_000});
    world.admin("POST", "/admin/faults", &fault).await;
    let expired = world.phase("c", Phase::Degraded).await;
    assert_eq!(ready_reason(&expired), "AttestationFailed");
    world.edit("c", &json!({"minGbps": 150})).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.allocations().await[0].path.min_gbps, 100, "no update without a ticket");
    world.delete_corridor("c").await;
    world.drain("c").await;
    world.corridor_gone("c").await;
    assert_eq!(world.allocations().await.len(), 0);
    running.stop().await;
}
