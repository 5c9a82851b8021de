//! Pods that have completed stay in the cluster for as long as their owner does, and there may be far more of them than
//! of those that run. They are neither listed nor kept, and what one held is free as soon as it completes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::objects::corridors::Corridor;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::{Cluster, ControlPlane, SchedulerProcess, metrics};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

const TEAM: &str = "team-a";
const COMPLETED: u32 = 40;
/// The whole of the Corridor: one Pod at a time.
const FLOOR_GBPS: u32 = 40;

async fn complete(pods: &Api<Pod>, name: &str, phase: &str) {
    let completed = Patch::Merge(json!({ "status": { "phase": phase } }));
    pods.patch_status(name, &PatchParams::default(), &completed).await.unwrap();
}

/// Pods of another scheduler and of ours, which have all completed.
async fn create_completed(cluster: &Cluster) {
    let pods = cluster.pods(TEAM);
    for (index, phase) in (0..COMPLETED).zip(["Succeeded", "Failed"].into_iter().cycle()) {
        let mut template = PodTemplate::small().spec("nodeName", json!("node-1"));
        if index % 4 < 2 {
            template = template.spec("schedulerName", json!("default-scheduler"));
        }
        let name = format!("done-{index}");
        template.create(cluster.admin(), TEAM, &name).await.unwrap();
        complete(&pods, &name, phase).await;
    }
}

async fn pods_received(scheduler: &SchedulerProcess) -> f64 {
    let scraped = scheduler.metrics().await.unwrap();
    metrics::sum(&scraped, "corridor_watch_events_total", &["resource=\"pods\""])
}

#[tokio::test]
async fn completed_pods_are_neither_listed_nor_kept_and_hold_nothing() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    cluster.create_nodes(1, &NodeTemplate::new("4", "64Gi")).await.unwrap();
    let _lease = cluster.hold_corrd_lease().await.unwrap();
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", FLOOR_GBPS).await.unwrap();
    create_completed(&cluster).await;

    let flags = ["--leader-elect=true"];
    let scheduler = SchedulerProcess::start(plane.scheduler_kubeconfig(), &flags).await.unwrap();
    let whole = PodTemplate::small().corridor(&corridor, &FLOOR_GBPS.to_string());
    let pods = cluster.pods(TEAM);
    for (name, phase) in [("first", "Succeeded"), ("second", "Failed"), ("third", "Succeeded")] {
        whole.create(cluster.admin(), TEAM, name).await.unwrap();
        cluster.until_pod(TEAM, name, "bound", |pod| pod.node().is_some()).await.unwrap();
        complete(&pods, name, phase).await;
    }
    let received = pods_received(&scheduler).await;
    assert!(
        received < f64::from(COMPLETED),
        "{received} Pods were received; {COMPLETED} had completed"
    );

    // A completed Pod that is changed afterwards takes nothing back.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "seen": "later" } } }));
    pods.patch("third", &PatchParams::default(), &label).await.unwrap();
    whole.create(cluster.admin(), TEAM, "fourth").await.unwrap();
    cluster.until_pod(TEAM, "fourth", "bound", |pod| pod.node().is_some()).await.unwrap();

    // The next scheduler lists the same, and knows that the Corridor is taken by a Pod that runs.
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
    let _next = SchedulerProcess::start(plane.scheduler_kubeconfig(), &flags).await.unwrap();
    whole.create(cluster.admin(), TEAM, "fifth").await.unwrap();
    cluster.until_pod(TEAM, "fifth", "held", |pod| pod.waiting_message().is_some()).await.unwrap();
    complete(&pods, "fourth", "Succeeded").await;
    cluster.until_pod(TEAM, "fifth", "bound", |pod| pod.node().is_some()).await.unwrap();
}
