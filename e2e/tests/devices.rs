//! Pods with ResourceClaims, on a real API server beside the controllers that claims need, with the scheduler limited
//! to the rights of `config/rbac/`.
//!
//! One control plane serves them all, one after another. `CORRIDOR_E2E_DEVICE_KILLS` says how often the
//! scheduler is killed while Pods with claims come and go: 3 times by default.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::control_plane::{CONFIG_DIR, ControllerManager};
use e2e::objects::devices::clear_devices;
use e2e::objects::volumes::clear_volumes;
use e2e::scenarios::devices::{self, DeviceSite};
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
            let fence = format!("{CONFIG_DIR}/admission/leader-fence.yaml");
            plane.kubectl(&["apply", "--filename", &fence]).await.unwrap();
            let controllers = plane.start_device_controllers().await.unwrap();
            (plane, controllers)
        })
        .await;
    plane
}

async fn run(scenario: impl AsyncFnOnce(&DeviceSite) -> Result<()>) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = control_plane().await.cluster().await.unwrap();
    // Before and not after: what a failed scenario leaves behind may explain it.
    clear_devices(cluster.admin()).await.unwrap();
    clear_volumes(cluster.admin()).await.unwrap();
    cluster.clear().await.unwrap();
    let site = DeviceSite::start(&cluster).await.unwrap();
    let mut outcome = Box::pin(scenario(&site)).await;
    if outcome.is_ok() {
        outcome = site.finish().await.map(drop);
    }
    if let Err(problem) = outcome {
        panic!("{problem}");
    }
}

#[tokio::test]
async fn administrator_takes_nothing() {
    run(devices::administrator_takes_nothing).await;
}

#[tokio::test]
async fn failing_expression_is_told() {
    run(devices::failing_expression_is_told).await;
}

#[tokio::test]
async fn pool_is_used_when_it_is_complete() {
    run(devices::pool_is_used_when_it_is_complete).await;
}

#[tokio::test]
async fn second_choice_is_taken_when_the_first_is_gone() {
    run(devices::second_choice_is_taken_when_the_first_is_gone).await;
}

#[tokio::test]
async fn tainted_device_waits_for_who_tolerates_it() {
    run(devices::tainted_device_waits_for_who_tolerates_it).await;
}

#[tokio::test]
async fn device_that_cannot_be_attached_is_told() {
    run(devices::device_that_cannot_be_attached_is_told).await;
}

#[tokio::test]
async fn pod_waits_until_its_device_is_attached() {
    run(devices::pod_waits_until_its_device_is_attached).await;
}

#[tokio::test]
async fn killed_between_any_two_writes() {
    run(devices::killed_between_any_two_writes).await;
}

#[tokio::test]
async fn leaders_change_between_any_two_writes() {
    run(devices::leaders_change_between_any_two_writes).await;
}

#[tokio::test]
async fn claim_at_its_end_takes_no_pods() {
    run(devices::claim_at_its_end_takes_no_pods).await;
}

#[tokio::test]
async fn claim_is_deleted_while_its_pod_waits() {
    run(devices::claim_is_deleted_while_its_pod_waits).await;
}

#[tokio::test]
async fn deleted_claim_frees_its_devices() {
    run(devices::deleted_claim_frees_its_devices).await;
}

#[tokio::test]
async fn claim_that_another_scheduler_allocates_is_followed() {
    run(devices::claim_that_another_scheduler_allocates_is_followed).await;
}

#[tokio::test]
async fn claim_that_others_change_is_reserved_nevertheless() {
    run(devices::claim_that_others_change_is_reserved_nevertheless).await;
}

#[tokio::test]
async fn claims_that_are_listed_anew_are_counted_once() {
    run(devices::claims_that_are_listed_anew_are_counted_once).await;
}

#[tokio::test]
async fn devices_that_are_taken_back_are_given_again() {
    run(devices::devices_that_are_taken_back_are_given_again).await;
}

#[tokio::test]
async fn lost_replies_and_refusals_lose_nothing() {
    run(devices::lost_replies_and_refusals_lose_nothing).await;
}

#[tokio::test]
async fn allocated_claim_decides_the_node() {
    run(devices::allocated_claim_decides_the_node).await;
}

#[tokio::test]
async fn claim_has_no_room_for_another_user() {
    run(devices::claim_has_no_room_for_another_user).await;
}

#[tokio::test]
async fn claim_that_is_named_twice_counts_once() {
    run(devices::claim_that_is_named_twice_counts_once).await;
}

#[tokio::test]
async fn pods_follow_a_shared_claim() {
    run(devices::pods_follow_a_shared_claim).await;
}

#[tokio::test]
async fn capacity_of_a_shared_device_is_held() {
    run(devices::capacity_of_a_shared_device_is_held).await;
}

#[tokio::test]
async fn parts_and_the_whole_exclude_each_other() {
    run(devices::parts_and_the_whole_exclude_each_other).await;
}

#[tokio::test]
async fn third_pod_waits_for_a_device() {
    run(devices::third_pod_waits_for_a_device).await;
}

#[tokio::test]
async fn killed_again_and_again_with_devices() {
    run(devices::killed_again_and_again_with_devices).await;
}

#[tokio::test]
async fn device_volume_and_corridor_are_taken_together() {
    run(devices::device_volume_and_corridor_are_taken_together).await;
}

#[tokio::test]
async fn late_leader_gives_nothing_out() {
    run(devices::late_leader_gives_nothing_out).await;
}

#[tokio::test]
async fn next_leader_knows_what_the_last_gave_out() {
    run(devices::next_leader_knows_what_the_last_gave_out).await;
}
