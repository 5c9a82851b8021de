//! Pods with volumes, on a real API server beside the controllers that volumes need, with the scheduler limited
//! to the rights of `config/rbac/`.
//!
//! One control plane serves them all, one after another. `CORRIDOR_E2E_VOLUME_KILLS` says how often the
//! scheduler is killed while Pods with claims come and go: 3 times by default.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::control_plane::ControllerManager;
use e2e::objects::volumes::{clear_volumes, remove_host_paths};
use e2e::scenarios::volumes::{self, VolumeSite};
use e2e::{ControlPlane, Result};
use tokio::sync::{Mutex, OnceCell};

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// They end with the process: see `hygiene.rs`.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<(ControlPlane, ControllerManager)> = OnceCell::const_new();
    let (plane, _) = SHARED
        .get_or_init(|| async {
            let plane = ControlPlane::start().await.unwrap();
            plane.install_crds().await.unwrap();
            let controllers = plane.start_volume_controllers().await.unwrap();
            (plane, controllers)
        })
        .await;
    plane
}

async fn run(scenario: impl AsyncFnOnce(&VolumeSite) -> Result<()>) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = control_plane().await.cluster().await.unwrap();
    // Before and not after: what a failed scenario leaves behind may explain it.
    clear_volumes(cluster.admin()).await.unwrap();
    cluster.clear().await.unwrap();
    let site = VolumeSite::start(&cluster).await.unwrap();
    let mut outcome = Box::pin(scenario(&site)).await;
    if outcome.is_ok() {
        outcome = site.finish().await;
    }
    // Folders on this machine, however, outlive the control plane.
    remove_host_paths(cluster.admin()).await.unwrap();
    if let Err(problem) = outcome {
        panic!("{problem}");
    }
}

#[tokio::test]
async fn limits_of_drivers_hold() {
    run(volumes::limits_of_drivers_hold).await;
}

#[tokio::test]
async fn volume_that_is_still_attached_counts_once() {
    run(volumes::volume_that_is_still_attached_counts_once).await;
}

#[tokio::test]
async fn claim_waits_for_the_corridor() {
    run(volumes::claim_waits_for_the_corridor).await;
}

#[tokio::test]
async fn corridor_waits_for_the_claim() {
    run(volumes::corridor_waits_for_the_claim).await;
}

#[tokio::test]
async fn killed_between_any_two_writes() {
    run(volumes::killed_between_any_two_writes).await;
}

#[tokio::test]
async fn host_paths_are_provisioned_where_the_pod_goes() {
    run(volumes::host_paths_are_provisioned_where_the_pod_goes).await;
}

#[tokio::test]
async fn zones_of_a_class_are_kept() {
    run(volumes::zones_of_a_class_are_kept).await;
}

#[tokio::test]
async fn claim_of_an_ephemeral_volume_ends_with_its_pod() {
    run(volumes::claim_of_an_ephemeral_volume_ends_with_its_pod).await;
}

#[tokio::test]
async fn foreign_claim_is_refused() {
    run(volumes::foreign_claim_is_refused).await;
}

#[tokio::test]
async fn bound_claim_decides_the_node() {
    run(volumes::bound_claim_decides_the_node).await;
}

#[tokio::test]
async fn claims_at_their_end_say_so() {
    run(volumes::claims_at_their_end_say_so).await;
}

#[tokio::test]
async fn killed_again_and_again_with_claims() {
    run(volumes::killed_again_and_again_with_claims).await;
}

#[tokio::test]
async fn holder_alone_is_preempted() {
    run(volumes::holder_alone_is_preempted).await;
}

#[tokio::test]
async fn second_pod_waits_for_the_holder() {
    run(volumes::second_pod_waits_for_the_holder).await;
}

#[tokio::test]
async fn pod_goes_where_the_provisioner_has_room() {
    run(volumes::pod_goes_where_the_provisioner_has_room).await;
}

#[tokio::test]
async fn provisioner_that_never_answers_reserves_nothing() {
    run(volumes::provisioner_that_never_answers_reserves_nothing).await;
}

#[tokio::test]
async fn refusal_for_ever_is_told() {
    run(volumes::refusal_for_ever_is_told).await;
}

#[tokio::test]
async fn refused_once_is_tried_again() {
    run(volumes::refused_once_is_tried_again).await;
}

#[tokio::test]
async fn volume_in_the_wrong_zone_is_told() {
    run(volumes::volume_in_the_wrong_zone_is_told).await;
}

#[tokio::test]
async fn pod_deleted_in_its_wait_leaves_nothing() {
    run(volumes::pod_deleted_in_its_wait_leaves_nothing).await;
}

#[tokio::test]
async fn taken_volume_is_replaced_by_another() {
    run(volumes::taken_volume_is_replaced_by_another).await;
}

#[tokio::test]
async fn stateful_set_returns_to_its_volumes() {
    run(volumes::stateful_set_returns_to_its_volumes).await;
}

#[tokio::test]
async fn claims_of_one_pod_meet_on_one_node() {
    run(volumes::claims_of_one_pod_meet_on_one_node).await;
}

#[tokio::test]
async fn smallest_local_volume_is_taken() {
    run(volumes::smallest_local_volume_is_taken).await;
}

#[tokio::test]
async fn pod_older_than_its_claim() {
    run(volumes::pod_older_than_its_claim).await;
}

#[tokio::test]
async fn pod_older_than_its_class() {
    run(volumes::pod_older_than_its_class).await;
}

#[tokio::test]
async fn pod_older_than_its_volume() {
    run(volumes::pod_older_than_its_volume).await;
}

#[tokio::test]
async fn pod_older_than_what_binds_its_claim_at_once() {
    run(volumes::pod_older_than_what_binds_its_claim_at_once).await;
}

#[tokio::test]
async fn zone_labels_of_volumes_are_kept() {
    run(volumes::zone_labels_of_volumes_are_kept).await;
}
