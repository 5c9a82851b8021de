//! Slow admission of one tenant's conditions and Events.

use std::time::{Duration, Instant};

use e2e::Result;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::webhook::Webhook;

use super::{OTHER, TROUBLED, bind, run};

/// Pods that fit nowhere, so that each gets a condition that says why.
const CROWD: usize = 60;

/// A webhook takes effect some time after it was installed: creates Pods until it is asked about one of them.
async fn until_asked(
    cluster: &e2e::Cluster,
    webhook: &Webhook,
    template: &PodTemplate,
) -> Result<()> {
    for number in 0..100 {
        let name = format!("probe-{number}");
        template.create(cluster.admin(), TROUBLED, &name).await?;
        cluster
            .until_pod(TROUBLED, &name, "bound, told or asked about", |pod| {
                pod.node().is_some() || pod.waiting_message().is_some() || webhook.asked() > 0
            })
            .await?;
        if webhook.asked() > 0 {
            return Ok(());
        }
    }
    panic!("the webhook was never asked");
}

/// How long it takes until the condition of a Pod that fits nowhere says so.
async fn time_to_be_told(cluster: &e2e::Cluster, name: &str) -> Result<Duration> {
    let began = Instant::now();
    PodTemplate::new("100000", "1Gi").create(cluster.admin(), OTHER, name).await?;
    let is_told = |message: &str| message.contains("Insufficient cpu");
    cluster
        .until_pod(OTHER, name, "told", |pod| pod.waiting_message().is_some_and(is_told))
        .await?;
    Ok(began.elapsed())
}

#[tokio::test]
async fn slow_condition_writes_of_one_namespace_keep_no_other_from_being_told() {
    run(async |cluster| {
        let webhook = Webhook::start(Duration::from_secs(9)).await?;
        webhook.install(cluster.admin(), "slow-status", TROUBLED, "pods/status").await?;
        let _scheduler = cluster.start_scheduler().await?;
        let vast = PodTemplate::new("100000", "1Gi");
        until_asked(cluster, &webhook, &vast).await?;
        cluster.create_pods(TROUBLED, "vast", CROWD, &vast).await?;
        for number in 0..3 {
            let told = time_to_be_told(cluster, &format!("vast-{number}")).await?;
            let bound = bind(cluster, OTHER, &format!("free-{number}")).await?;
            println!("another's Pod is told after {told:?}, and one bound after {bound:?}");
            assert!(told < Duration::from_secs(4) && bound < Duration::from_secs(2));
        }
        Webhook::remove(cluster.admin(), "slow-status").await
    })
    .await;
}

#[tokio::test]
async fn slow_events_of_one_namespace_keep_no_other_from_being_told() {
    run(async |cluster| {
        let webhook = Webhook::start(Duration::from_secs(9)).await?;
        webhook.install(cluster.admin(), "slow-events", TROUBLED, "events").await?;
        let _scheduler = cluster.start_scheduler().await?;
        until_asked(cluster, &webhook, &PodTemplate::small()).await?;
        cluster.create_pods(TROUBLED, "free", CROWD, &PodTemplate::small()).await?;
        for number in 0..3 {
            let began = Instant::now();
            let name = format!("free-{number}");
            bind(cluster, OTHER, &name).await?;
            cluster.until_event(OTHER, &name, "Scheduled").await?;
            let told = began.elapsed();
            println!("another's Event Scheduled is there after {told:?}");
            assert!(told < Duration::from_secs(4), "{told:?}");
        }
        Webhook::remove(cluster.admin(), "slow-events").await
    })
    .await;
}
