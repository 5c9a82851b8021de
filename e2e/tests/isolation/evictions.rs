//! Victims of one tenant that do not go, because the admission of their status or of their deletion is slow or down.

use std::time::{Duration, Instant};

use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::webhook::Webhook;
use e2e::{Cluster, Result, SchedulerProcess, metrics};
use futures::future::try_join;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use super::{HEEDED_POLL_EVERY, HEEDED_TIME_MAX, OTHER, TROUBLED, run, until_bound};

/// Each has a node to itself, full of victims.
const PREEMPTORS: usize = 3;
const VICTIMS_OF_EACH: usize = 100;
/// Bindings beside which the other tenant preempts: evictions have fewer slots then.
const BUSY: usize = 100;
/// Of the other tenant, each in the place of the one before.
const PREEMPTIONS: i32 = 3;
const URGENT: i32 = 1000;

/// Where the victims of the troubled tenant are, and those of the other one.
const ZONE: &str = "zone";

/// Nobody is there to end a Pod gracefully.
fn pod(cpu: &str, zone: &str) -> PodTemplate {
    PodTemplate::new(cpu, "64Mi")
        .spec("terminationGracePeriodSeconds", json!(0))
        .spec("nodeSelector", json!({ ZONE: zone }))
}

/// The nodes, and on each as many Pods as it takes.
async fn fill(cluster: &Cluster) -> Result<()> {
    let full = NodeTemplate::new(&VICTIMS_OF_EACH.to_string(), "256Gi").label(ZONE, TROUBLED);
    cluster.create_nodes_numbered(101..101 + PREEMPTORS, &full).await?;
    let small = NodeTemplate::new("1", "16Gi").label(ZONE, OTHER);
    cluster.create_nodes_numbered([201], &small).await?;
    let victims = PREEMPTORS * VICTIMS_OF_EACH;
    cluster.create_pods(TROUBLED, "victim", victims, &pod("1", TROUBLED)).await?;
    until_bound(cluster, TROUBLED, "victim", victims).await?;
    cluster.create_pods(OTHER, "victim", 1, &pod("1", OTHER)).await?;
    until_bound(cluster, OTHER, "victim", 1).await
}

/// Writes what the webhook is to be asked about, without an effect, until it is.
async fn until_asked(cluster: &Cluster, webhook: &Webhook) -> Result<()> {
    let (began, pods) = (Instant::now(), cluster.pods(TROUBLED));
    while webhook.asked() == 0 && began.elapsed() < HEEDED_TIME_MAX {
        sleep(HEEDED_POLL_EVERY).await;
        let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
        pods.delete("victim-0", &dry).await.unwrap();
        let (dry, nothing) = (PatchParams { dry_run: true, ..PatchParams::default() }, json!({}));
        pods.patch_status("victim-0", &dry, &Patch::Merge(nothing)).await.unwrap();
    }
    assert!(webhook.asked() > 0, "the webhook is asked");
    Ok(())
}

/// Returns when every Pod of the troubled tenant is a victim.
async fn preempt_all(cluster: &Cluster, scheduler: &SchedulerProcess) -> Result<()> {
    let whole = pod(&VICTIMS_OF_EACH.to_string(), TROUBLED).priority("urgent-0", URGENT);
    cluster.create_pods(OTHER, "whole", PREEMPTORS, &whole).await?;
    let victims = f64::from(u32::try_from(PREEMPTORS * VICTIMS_OF_EACH).unwrap());
    let began = Instant::now();
    loop {
        let scraped = scheduler.metrics().await?;
        let chosen = metrics::sum(&scraped, "scheduler_preemption_victims_sum", &[]);
        if chosen >= victims {
            return Ok(());
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{chosen} victims of {victims}");
        sleep(HEEDED_POLL_EVERY).await;
    }
}

/// How long it takes until a Pod of the other tenant has the place of a lesser one, while others are bound.
async fn time_to_preempt(cluster: &Cluster, number: i32) -> Result<Duration> {
    let class = format!("urgent-{number}");
    let preempting = async {
        let began = Instant::now();
        let name = format!("takes-{number}");
        let takes = pod("1", OTHER).priority(&class, URGENT + number);
        takes.create(cluster.admin(), OTHER, &name).await?;
        cluster.until_pod(OTHER, &name, "bound", |pod| pod.node().is_some()).await?;
        Ok(began.elapsed())
    };
    let (prefix, small) = (format!("busy-{number}"), PodTemplate::small());
    let busy = cluster.create_pods(OTHER, &prefix, BUSY, &small);
    try_join(preempting, busy).await.map(|(took, _)| took)
}

/// What goes wrong with the victims of the troubled tenant.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Slow,
    Down,
}

/// `resource`: what the webhook is asked about.
async fn preempts_beside(trouble: Trouble, resource: &str) {
    run(async |cluster| {
        let webhook = Webhook::start(Duration::ZERO).await?;
        webhook.install(cluster.admin(), "victims", TROUBLED, resource).await?;
        // Long before they are used: the API server's admission hears of them by a watch.
        for number in 0..=PREEMPTIONS {
            cluster.ensure_priority_class(&format!("urgent-{number}"), URGENT + number).await?;
        }
        let scheduler = cluster.start_scheduler().await?;
        fill(cluster).await?;
        until_asked(cluster, &webhook).await?;
        match trouble {
            Trouble::Slow => webhook.answer_after(Duration::from_secs(9)),
            Trouble::Down => webhook.die(),
        }
        preempt_all(cluster, &scheduler).await?;
        for number in 1..=PREEMPTIONS {
            let took = time_to_preempt(cluster, number).await?;
            println!("{trouble:?}, {resource}: another's Pod has its place after {took:?}");
            assert!(took < Duration::from_secs(5), "{took:?}");
        }
        // Once the webhook is gone, the victims go, too.
        webhook.answer_after(Duration::ZERO);
        Webhook::remove(cluster.admin(), "victims").await?;
        until_bound(cluster, OTHER, "whole", PREEMPTORS).await
    })
    .await;
}

#[tokio::test]
async fn victims_that_are_told_slowly_hold_up_no_preemption_elsewhere() {
    preempts_beside(Trouble::Slow, "pods/status").await;
}

#[tokio::test]
async fn victims_that_cannot_be_told_hold_up_no_preemption_elsewhere() {
    preempts_beside(Trouble::Down, "pods/status").await;
}

#[tokio::test]
async fn victims_that_are_deleted_slowly_hold_up_no_preemption_elsewhere() {
    preempts_beside(Trouble::Slow, "pods").await;
}

#[tokio::test]
async fn victims_that_cannot_be_deleted_hold_up_no_preemption_elsewhere() {
    preempts_beside(Trouble::Down, "pods").await;
}
