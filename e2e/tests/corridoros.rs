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
//! One control plane serves them all, one after another: a scheduler sees every namespace, and the
//! stories that are about time should not compete for the machine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::objects::custom::remove_all;
use e2e::scenarios::corridoros;
use e2e::{Cluster, ControlPlane, Result};
use tokio::sync::{Mutex, OnceCell};

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// It ends with the process: see `hygiene.rs`.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(|| async {
            let plane = ControlPlane::start().await.unwrap();
            plane.install_crds().await.unwrap();
            plane
        })
        .await
}

async fn run(story: impl AsyncFnOnce(&Cluster) -> Result<()>) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = control_plane().await.cluster().await.unwrap();
    // Before and not after: what a failed story leaves behind may explain it.
    remove_all(cluster.admin()).await.unwrap();
    cluster.clear().await.unwrap();
    if let Err(problem) = story(&cluster).await {
        panic!("{problem}");
    }
}

#[tokio::test]
async fn created_used_measured_and_deleted() {
    run(corridoros::created_used_measured_and_deleted).await;
}

#[tokio::test]
async fn creations_are_ready_soon() {
    run(corridoros::creations_are_ready_soon).await;
}

#[tokio::test]
async fn bound_when_both_are_ready() {
    run(corridoros::bound_when_both_are_ready).await;
}

#[tokio::test]
async fn capacity_falls_and_returns() {
    run(corridoros::capacity_falls_and_returns).await;
}

#[tokio::test]
async fn bundle_falls_below_its_floor() {
    run(corridoros::bundle_falls_below_its_floor).await;
}

#[tokio::test]
async fn reach_and_latency_are_enforced() {
    run(corridoros::reach_and_latency_are_enforced).await;
}

#[tokio::test]
async fn drift_is_met_by_recalibration() {
    run(corridoros::drift_is_met_by_recalibration).await;
}

#[tokio::test]
async fn whole_spec_reaches_the_daemons() {
    run(corridoros::whole_spec_reaches_the_daemons).await;
}

#[tokio::test]
async fn fail_fast_by_annotation() {
    run(corridoros::fail_fast_by_annotation).await;
}

#[tokio::test]
async fn fail_fast_by_configuration() {
    run(corridoros::fail_fast_by_configuration).await;
}

#[tokio::test]
async fn missing_claim_denies_allocation() {
    run(corridoros::missing_claim_denies_allocation).await;
}

#[tokio::test]
async fn policies_choose_the_device() {
    run(corridoros::policies_choose_the_device).await;
}

#[tokio::test]
async fn tenants_are_let_in_by_the_owner() {
    run(corridoros::tenants_are_let_in_by_the_owner).await;
}

#[tokio::test]
async fn revoked_device_denies_new_pods() {
    run(corridoros::revoked_device_denies_new_pods).await;
}

#[tokio::test]
async fn expired_ticket_denies_pods_and_updates() {
    run(corridoros::expired_ticket_denies_pods_and_updates).await;
}

#[tokio::test]
async fn release_needs_no_ticket() {
    run(corridoros::release_needs_no_ticket).await;
}

#[tokio::test]
async fn deletion_waits_for_users() {
    run(corridoros::deletion_waits_for_users).await;
}

#[tokio::test]
async fn force_release_does_not_wait() {
    run(corridoros::force_release_does_not_wait).await;
}

#[tokio::test]
async fn bind_races_delete() {
    run(corridoros::bind_races_delete).await;
}

#[tokio::test]
async fn daemons_away_and_back() {
    run(corridoros::daemons_away_and_back).await;
}

#[tokio::test]
async fn faulty_allocation_leaks_nothing() {
    run(corridoros::faulty_allocation_leaks_nothing).await;
}

#[tokio::test]
async fn faulty_release_leaks_nothing() {
    run(corridoros::faulty_release_leaks_nothing).await;
}

#[tokio::test]
async fn readings_that_are_no_numbers() {
    run(corridoros::readings_that_are_no_numbers).await;
}

#[tokio::test]
async fn reused_ids_are_not_ours() {
    run(corridoros::reused_ids_are_not_ours).await;
}

#[tokio::test]
async fn durable_bundles_survive_a_restart() {
    run(corridoros::durable_bundles_survive_a_restart).await;
}

#[tokio::test]
async fn leases_are_renewed() {
    run(corridoros::leases_are_renewed).await;
}

#[tokio::test]
async fn orphans_are_swept() {
    run(corridoros::orphans_are_swept).await;
}

#[tokio::test]
async fn changes_in_place() {
    run(corridoros::changes_in_place).await;
}

#[tokio::test]
async fn changes_by_reallocation() {
    run(corridoros::changes_by_reallocation).await;
}

#[tokio::test]
async fn changes_that_are_refused() {
    run(corridoros::changes_that_are_refused).await;
}

#[tokio::test]
async fn removed_fields_do_not_linger() {
    run(corridoros::removed_fields_do_not_linger).await;
}

#[tokio::test]
async fn namespace_deletion_finishes() {
    run(async |cluster| {
        let _manager = control_plane().await.start_controller_manager().await?;
        corridoros::namespace_deletion_finishes(cluster).await
    })
    .await;
}
