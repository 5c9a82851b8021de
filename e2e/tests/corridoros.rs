//! Corridors and MemoryBundles for real: the controllers, daemons in a process of their own, a real
//! API server, and the scheduler limited to the rights of `config/rbac/`.
//!
//! Longer runs than CI's, by environment variable:
//!
//! | Variable | What | Default |
//! |---|---|---|
//! | `CORRIDOR_E2E_CREATIONS` | timed creations | 200 |
//! | `CORRIDOR_E2E_RACES` | deletions that race a bind | 20 |
//!
//! A scheduler sees every namespace of its cluster, so each story has a control plane to itself while
//! it runs. There are two, shared by all: most stories wait more than they compute. The one that
//! measures times runs alone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::objects::custom::remove_all;
use e2e::scenarios::corridoros;
use e2e::{Cluster, ControlPlane, Result};
use tokio::sync::{Mutex, Semaphore};

/// As many as there are cores in CI.
const PLANES: usize = 2;

static FREE_PLANES: Semaphore = Semaphore::const_new(PLANES);

/// Each is held by one story at a time. They end with the process: see `hygiene.rs`.
static SHARED: [Mutex<Option<ControlPlane>>; PLANES] = [const { Mutex::const_new(None) }; PLANES];

async fn run(story: impl AsyncFnOnce(&ControlPlane, &Cluster) -> Result<()>) {
    let _one = FREE_PLANES.acquire().await.unwrap();
    run_on_a_free_plane(story).await;
}

/// With no other story beside it.
async fn run_alone(story: impl AsyncFnOnce(&ControlPlane, &Cluster) -> Result<()>) {
    let _all = FREE_PLANES.acquire_many(PLANES.try_into().unwrap()).await.unwrap();
    run_on_a_free_plane(story).await;
}

async fn run_on_a_free_plane(story: impl AsyncFnOnce(&ControlPlane, &Cluster) -> Result<()>) {
    // A permit for each plane, so one of them is free.
    let mut plane = SHARED.iter().find_map(|plane| plane.try_lock().ok()).unwrap();
    let plane = match &mut *plane {
        Some(plane) => &*plane,
        none => &*none.insert(start_plane().await),
    };
    let cluster = plane.cluster().await.unwrap();
    // Before and not after: what a failed story leaves behind may explain it.
    remove_all(cluster.admin()).await.unwrap();
    cluster.clear().await.unwrap();
    if let Err(problem) = story(plane, &cluster).await {
        panic!("{problem}");
    }
}

async fn start_plane() -> ControlPlane {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    plane
}

#[tokio::test]
async fn created_used_measured_and_deleted() {
    run(async |_, cluster| corridoros::created_used_measured_and_deleted(cluster).await).await;
}

#[tokio::test]
async fn creations_are_ready_soon() {
    run_alone(async |_, cluster| corridoros::creations_are_ready_soon(cluster).await).await;
}

#[tokio::test]
async fn bound_when_both_are_ready() {
    run(async |_, cluster| corridoros::bound_when_both_are_ready(cluster).await).await;
}

#[tokio::test]
async fn capacity_falls_and_returns() {
    run(async |_, cluster| corridoros::capacity_falls_and_returns(cluster).await).await;
}

#[tokio::test]
async fn readings_alternate_around_the_floor() {
    run(async |_, cluster| corridoros::readings_alternate_around_the_floor(cluster).await).await;
}

#[tokio::test]
async fn bundle_falls_below_its_floor() {
    run(async |_, cluster| corridoros::bundle_falls_below_its_floor(cluster).await).await;
}

#[tokio::test]
async fn windows_change_what_may_be_reserved() {
    run(async |_, cluster| corridoros::windows_change_what_may_be_reserved(cluster).await).await;
}

#[tokio::test]
async fn lost_allocations_are_told() {
    run(async |_, cluster| corridoros::lost_allocations_are_told(cluster).await).await;
}

#[tokio::test]
async fn updates_in_vain_are_told() {
    run(async |_, cluster| corridoros::updates_in_vain_are_told(cluster).await).await;
}

#[tokio::test]
async fn reach_and_latency_are_enforced() {
    run(async |_, cluster| corridoros::reach_and_latency_are_enforced(cluster).await).await;
}

#[tokio::test]
async fn drift_is_met_by_recalibration() {
    run(async |_, cluster| corridoros::drift_is_met_by_recalibration(cluster).await).await;
}

#[tokio::test]
async fn whole_spec_reaches_the_daemons() {
    run(async |_, cluster| corridoros::whole_spec_reaches_the_daemons(cluster).await).await;
}

#[tokio::test]
async fn fail_fast_by_annotation() {
    run(async |_, cluster| corridoros::fail_fast_by_annotation(cluster).await).await;
}

#[tokio::test]
async fn fail_fast_by_configuration() {
    run(async |_, cluster| corridoros::fail_fast_by_configuration(cluster).await).await;
}

#[tokio::test]
async fn missing_claim_denies_allocation() {
    run(async |_, cluster| corridoros::missing_claim_denies_allocation(cluster).await).await;
}

#[tokio::test]
async fn policies_choose_the_device() {
    run(async |_, cluster| corridoros::policies_choose_the_device(cluster).await).await;
}

#[tokio::test]
async fn tenants_are_let_in_by_the_owner() {
    run(async |_, cluster| corridoros::tenants_are_let_in_by_the_owner(cluster).await).await;
}

#[tokio::test]
async fn revoked_device_denies_new_pods() {
    run(async |_, cluster| corridoros::revoked_device_denies_new_pods(cluster).await).await;
}

#[tokio::test]
async fn expired_ticket_denies_pods_and_updates() {
    run(async |_, cluster| corridoros::expired_ticket_denies_pods_and_updates(cluster).await).await;
}

#[tokio::test]
async fn release_needs_no_ticket() {
    run(async |_, cluster| corridoros::release_needs_no_ticket(cluster).await).await;
}

#[tokio::test]
async fn deletion_waits_for_users() {
    run(async |_, cluster| corridoros::deletion_waits_for_users(cluster).await).await;
}

#[tokio::test]
async fn force_release_does_not_wait() {
    run(async |_, cluster| corridoros::force_release_does_not_wait(cluster).await).await;
}

#[tokio::test]
async fn bind_races_delete() {
    run(async |_, cluster| corridoros::bind_races_delete(cluster).await).await;
}

#[tokio::test]
async fn daemons_away_and_back() {
    run(async |_, cluster| corridoros::daemons_away_and_back(cluster).await).await;
}

#[tokio::test]
async fn faulty_allocation_leaks_nothing() {
    run(async |_, cluster| corridoros::faulty_allocation_leaks_nothing(cluster).await).await;
}

#[tokio::test]
async fn faulty_release_leaks_nothing() {
    run(async |_, cluster| corridoros::faulty_release_leaks_nothing(cluster).await).await;
}

#[tokio::test]
async fn readings_that_are_no_numbers() {
    run(async |_, cluster| corridoros::readings_that_are_no_numbers(cluster).await).await;
}

#[tokio::test]
async fn reused_ids_are_not_ours() {
    run(async |_, cluster| corridoros::reused_ids_are_not_ours(cluster).await).await;
}

#[tokio::test]
async fn durable_bundles_survive_a_restart() {
    run(async |_, cluster| corridoros::durable_bundles_survive_a_restart(cluster).await).await;
}

#[tokio::test]
async fn leases_are_renewed() {
    run(async |_, cluster| corridoros::leases_are_renewed(cluster).await).await;
}

#[tokio::test]
async fn orphans_are_swept() {
    run(async |_, cluster| corridoros::orphans_are_swept(cluster).await).await;
}

#[tokio::test]
async fn changes_in_place() {
    run(async |_, cluster| corridoros::changes_in_place(cluster).await).await;
}

#[tokio::test]
async fn changes_by_reallocation() {
    run(async |_, cluster| corridoros::changes_by_reallocation(cluster).await).await;
}

#[tokio::test]
async fn changes_that_are_refused() {
    run(async |_, cluster| corridoros::changes_that_are_refused(cluster).await).await;
}

#[tokio::test]
async fn removed_fields_do_not_linger() {
    run(async |_, cluster| corridoros::removed_fields_do_not_linger(cluster).await).await;
}

#[tokio::test]
async fn namespace_deletion_finishes() {
    run(async |plane, cluster| {
        let _manager = plane.start_controller_manager().await?;
        corridoros::namespace_deletion_finishes(cluster).await
    })
    .await;
}
