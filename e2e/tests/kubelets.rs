//! What a kubelet says against a decision: the test plays it, and the scheduler leaves its node alone for a while.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use e2e::metrics;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::{Cluster, ControlPlane, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::json;

const TEAM: &str = "team-a";

async fn fail(cluster: &Cluster, pod: &str, reason: &str, message: &str) -> Result<()> {
    let status = json!({ "phase": "Failed", "reason": reason, "message": message });
    let patch = Patch::Merge(json!({ "status": status }));
    cluster.pods(TEAM).patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
    cluster
        .until_pod(TEAM, pod, "failed", |it| {
            it.status.as_ref().unwrap().phase.as_deref() == Some("Failed")
        })
        .await
        .map(drop)
}

async fn bind(cluster: &Cluster, name: &str) -> Result<Pod> {
    PodTemplate::small().create(cluster.admin(), TEAM, name).await?;
    cluster.until_pod(TEAM, name, "bound", |pod| pod.node().is_some()).await
}

#[tokio::test]
async fn a_node_whose_kubelet_rejects_is_left_alone_for_a_while_and_then_used_again() {
    let plane = ControlPlane::start().await.unwrap();
    let story = async {
        plane.install_crds().await?;
        let cluster = plane.cluster().await?;
        cluster.ensure_namespace(TEAM).await?;
        cluster.create_nodes(1, &NodeTemplate::new("1", "64Gi")).await?;
        let scheduler = cluster.start_scheduler().await?;
        // What ran and was evicted is no rejection, nor does a Pod that does not suit the node close it.
        bind(&cluster, "evicted").await?;
        fail(&cluster, "evicted", "Evicted", "The node was low on resource: memory.").await?;
        bind(&cluster, "armed").await?;
        fail(&cluster, "armed", "AppArmor", "Pod was rejected: Cannot enforce AppArmor").await?;
        bind(&cluster, "rejected").await?;
        let why = "Pod was rejected: Node didn't have enough resource: cpu, requested: 100";
        fail(&cluster, "rejected", "OutOfcpu", why).await?;
        until_counted(&scheduler, "OutOfcpu").await?;
        PodTemplate::small().create(cluster.admin(), TEAM, "next").await?;
        let held = |pod: &Pod| pod.waiting_message().is_some();
        let held = cluster.until_pod(TEAM, "next", "held", held).await?;
        let told = held.waiting_message().unwrap_or_default();
        assert!(told.contains("node-1: the kubelet has rejected a Pod (OutOfcpu)"), "{told}");
        // Nothing happens from here on but time.
        cluster.until_pod(TEAM, "next", "bound", |pod| pod.node().is_some()).await?;
        let scraped = scheduler.metrics().await?;
        let rejections =
            |labels: &[&str]| metrics::sum(&scraped, "corridor_kubelet_rejections_total", labels);
        assert!((rejections(&[]) - 2.0).abs() < 0.1, "{scraped}");
        assert!((rejections(&["reason=\"AppArmor\""]) - 1.0).abs() < 0.1);
        assert!(metrics::sum(&scraped, "corridor_woken_by_sweep_total", &[]) < 0.1);
        Ok::<_, e2e::Error>(())
    };
    if let Err(problem) = story.await {
        panic!("{problem}");
    }
}

async fn until_counted(scheduler: &e2e::SchedulerProcess, reason: &str) -> Result<()> {
    let label = format!("reason=\"{reason}\"");
    for _ in 0..600 {
        let scraped = scheduler.metrics().await?;
        if metrics::sum(&scraped, "corridor_kubelet_rejections_total", &[&label]) > 0.5 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the rejection was not noticed");
}
