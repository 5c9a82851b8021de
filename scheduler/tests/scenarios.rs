//! The scenarios of `e2e` on the in-memory API, with the binary that was just built: the same stories
//! as on a real API server, with nothing installed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::net::SocketAddr;

use e2e::{Cluster, Result, scenarios};
use kube::config::{KubeConfigOptions, Kubeconfig};
use sim::ApiServer;

async fn run(scenario: impl AsyncFnOnce(&Cluster) -> Result<()>) {
    let api = ApiServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), crds::all()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, api.kubeconfig()).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&api.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let admin = kube::Client::try_from(config).unwrap();
    let binary = env!("CARGO_BIN_EXE_corridor-scheduler").into();
    let outcome = scenario(&Cluster::new(admin, path, binary)).await;
    api.stop().await;
    if let Err(problem) = outcome {
        panic!("{problem}");
    }
}

macro_rules! on_the_in_memory_api {
    ($($scenario:ident)*) => {
        $(
            #[tokio::test]
            async fn $scenario() {
                run(scenarios::$scenario).await;
            }
        )*
    };
}

on_the_in_memory_api! {
    fifty_pods_over_five_nodes
    pod_that_fits_nowhere_says_why
    pods_keep_apart
    important_pod_takes_a_place
    pod_waits_for_its_corridor
    pod_waits_for_corridor_and_bundle
    releasing_corridor_drains
    corridor_and_bundle_live_and_end
    held_pods_bind_in_order
    stale_backend_holds_pods
    pods_that_cannot_be_placed_say_why
    killed_in_the_middle_of_500_pods
    stops_gracefully_under_load
}
