//! Every scenario on a real API server, with the scheduler limited to the rights of `config/rbac/`.
//!
//! One control plane serves them all, one after another: a scheduler sees every namespace, and the
//! scenarios that are about time should not compete for the machine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::{Cluster, ControlPlane, Result, scenarios};
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

async fn run(scenario: impl AsyncFnOnce(&Cluster) -> Result<()>) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = control_plane().await.cluster().await.unwrap();
    // Before and not after: what a failed scenario leaves behind may explain it.
    cluster.clear().await.unwrap();
    if let Err(problem) = scenario(&cluster).await {
        panic!("{problem}");
    }
}

#[tokio::test]
async fn fifty_pods_over_five_nodes() {
    run(scenarios::fifty_pods_over_five_nodes).await;
}

#[tokio::test]
async fn pod_that_fits_nowhere_says_why() {
    run(scenarios::pod_that_fits_nowhere_says_why).await;
}

#[tokio::test]
async fn extended_resource_of_a_device_class_is_unsupported() {
    run(scenarios::extended_resource_of_a_device_class_is_unsupported).await;
}

#[tokio::test]
async fn pods_keep_apart() {
    run(scenarios::pods_keep_apart).await;
}

#[tokio::test]
async fn important_pod_takes_a_place() {
    run(scenarios::important_pod_takes_a_place).await;
}

#[tokio::test]
async fn lesser_pod_waits_for_promised_bandwidth() {
    run(scenarios::lesser_pod_waits_for_promised_bandwidth).await;
}

#[tokio::test]
async fn useless_nomination_is_withdrawn() {
    run(scenarios::useless_nomination_is_withdrawn).await;
}

#[tokio::test]
async fn victim_that_cannot_go_is_told_so() {
    run(scenarios::victim_that_cannot_go_is_told_so).await;
}

#[tokio::test]
async fn pod_waits_for_its_corridor() {
    run(scenarios::pod_waits_for_its_corridor).await;
}

#[tokio::test]
async fn pod_waits_for_corridor_and_bundle() {
    run(scenarios::pod_waits_for_corridor_and_bundle).await;
}

#[tokio::test]
async fn releasing_corridor_drains() {
    run(scenarios::releasing_corridor_drains).await;
}

#[tokio::test]
async fn corridor_and_bundle_live_and_end() {
    run(scenarios::corridor_and_bundle_live_and_end).await;
}

#[tokio::test]
async fn held_pods_bind_in_order() {
    run(scenarios::held_pods_bind_in_order).await;
}

#[tokio::test]
async fn stale_backend_holds_pods() {
    run(scenarios::stale_backend_holds_pods).await;
}

#[tokio::test]
async fn pods_that_cannot_be_placed_say_why() {
    run(scenarios::pods_that_cannot_be_placed_say_why).await;
}

#[tokio::test]
async fn killed_in_the_middle_of_500_pods() {
    run(scenarios::killed_in_the_middle_of_500_pods).await;
}

#[tokio::test]
async fn stops_gracefully_under_load() {
    run(scenarios::stops_gracefully_under_load).await;
}
