//! Admission of one tenant's Bindings that is down, slow, or says no.

use std::time::{Duration, Instant};

use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::webhook::Webhook;
use e2e::{Cluster, Result, metrics};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use super::{
    HEEDED_POLL_EVERY, HEEDED_TIME_MAX, OTHER, TROUBLED, bind, bind_many, run, until_bound,
};

/// More than there are bind slots.
const CROWD: usize = 70;

/// Binds Pods until the API server asks the webhook about one.
async fn until_asked(cluster: &Cluster, webhook: &Webhook) -> Result<()> {
    let began = Instant::now();
    for number in 0.. {
        bind(cluster, TROUBLED, &format!("probe-{number}")).await?;
        if webhook.asked() > 0 || began.elapsed() > HEEDED_TIME_MAX {
            break;
        }
        sleep(HEEDED_POLL_EVERY).await;
    }
    assert!(webhook.asked() > 0, "the webhook is asked");
    Ok(())
}

#[tokio::test]
async fn a_webhook_that_is_down_for_one_namespace_stops_no_other() {
    run(async |cluster| {
        let webhook = Webhook::start(Duration::ZERO).await?;
        webhook.install(cluster.admin(), "down", TROUBLED, "pods/binding").await?;
        let scheduler = cluster.start_scheduler().await?;
        until_asked(cluster, &webhook).await?;
        webhook.die();
        cluster.create_pods(TROUBLED, "stuck", CROWD, &PodTemplate::small()).await?;
        // Each of them says which webhook failed, in the API server's words.
        let is_told = |message: &str| message.contains("failed calling webhook \"down.test");
        let told = cluster
            .until_pod(TROUBLED, "stuck-0", "told", |pod| {
                pod.waiting_message().is_some_and(is_told)
            })
            .await?;
        let message = told.waiting_message().unwrap_or_default();
        assert!(message.starts_with("binding rejected: "), "{message}");
        let event = cluster.until_event(TROUBLED, "stuck-0", "FailedScheduling").await?;
        assert!(is_told(event.message.as_deref().unwrap_or_default()), "{event:?}");
        // Meanwhile the other tenant is bound at once, and told what it lacks.
        for number in 0..5 {
            let took = bind(cluster, OTHER, &format!("free-{number}")).await?;
            println!("beside a dead webhook, another's Pod is bound after {took:?}");
            assert!(took < Duration::from_secs(2), "{took:?}");
        }
        let vast = PodTemplate::new("100000", "1Gi");
        vast.create(cluster.admin(), OTHER, "vast").await?;
        cluster
            .until_pod(OTHER, "vast", "told", |pod| {
                pod.waiting_message().is_some_and(|it| it.contains("Insufficient cpu"))
            })
            .await?;
        // No Pod that cannot be bound keeps its room for long.
        let scraped = scheduler.metrics().await?;
        let in_flight = metrics::sum(&scraped, "corridor_binds_in_flight", &[]);
        println!("Bindings without an outcome: {in_flight}");
        assert!(in_flight < 65.0, "{in_flight}");
        // Once the webhook is gone, all of them are.
        Webhook::remove(cluster.admin(), "down").await?;
        until_bound(cluster, TROUBLED, "stuck", CROWD).await
    })
    .await;
}

#[tokio::test]
async fn a_slow_webhook_of_one_namespace_costs_the_others_little() {
    const PODS: usize = 400;
    run(async |cluster| {
        let webhook = Webhook::start(Duration::ZERO).await?;
        webhook.install(cluster.admin(), "slow", TROUBLED, "pods/binding").await?;
        let _scheduler = cluster.start_scheduler().await?;
        until_asked(cluster, &webhook).await?;
        webhook.answer_after(Duration::from_secs(3));
        let alone = bind_many(cluster, OTHER, "alone", PODS).await?;
        cluster.create_pods(TROUBLED, "slow", 200, &PodTemplate::small()).await?;
        let beside = bind_many(cluster, OTHER, "beside", PODS).await?;
        let share = alone.as_secs_f64() / beside.as_secs_f64();
        println!("{PODS} Pods alone {alone:?}, beside a webhook of 3 s {beside:?}: {share:.2}");
        assert!(webhook.asked() > 0, "the webhook was asked");
        assert!(share > 0.5, "the others keep {share:.2} of their speed");
        Webhook::remove(cluster.admin(), "slow").await?;
        until_bound(cluster, TROUBLED, "slow", 200).await
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_turns_slow_holds_no_other_up() {
    const PODS: usize = 400;
    run(async |cluster| {
        let webhook = Webhook::start(Duration::ZERO).await?;
        webhook.install(cluster.admin(), "turns", TROUBLED, "pods/binding").await?;
        let _scheduler = cluster.start_scheduler().await?;
        until_asked(cluster, &webhook).await?;
        // It has earned as many Bindings at a time as a namespace may have.
        bind_many(cluster, TROUBLED, "quick", PODS).await?;
        assert!(webhook.asked() >= PODS, "the webhook was asked");
        webhook.answer_after(Duration::from_secs(5));
        cluster.create_pods(TROUBLED, "slow", 200, &PodTemplate::small()).await?;
        for number in 0..10 {
            let took = bind(cluster, OTHER, &format!("free-{number}")).await?;
            println!(
                "beside a webhook that has turned slow, another's Pod is bound after {took:?}"
            );
            assert!(took < Duration::from_secs(2), "{took:?}");
        }
        webhook.answer_after(Duration::ZERO);
        Webhook::remove(cluster.admin(), "turns").await?;
        until_bound(cluster, TROUBLED, "slow", 200).await
    })
    .await;
}

#[tokio::test]
async fn a_policy_that_refuses_bindings_is_named_on_the_pod() {
    const WORDS: &str = "bindings are frozen for the audit";
    run(async |cluster| {
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.admin().clone());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cluster.admin().clone());
        let policy = json!({
            "metadata": {"name": "freeze"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["pods/binding"],
                }]},
                "validations": [{"expression": "false", "message": WORDS}],
            },
        });
        let binding = json!({
            "metadata": {"name": "freeze"},
            "spec": {
                "policyName": "freeze",
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": TROUBLED},
                }},
            },
        });
        let create = PostParams::default();
        policies.create(&create, &serde_json::from_value(policy).unwrap()).await.unwrap();
        bindings.create(&create, &serde_json::from_value(binding).unwrap()).await.unwrap();
        let scheduler = cluster.start_scheduler().await?;
        // A new policy takes effect some time after it was written.
        let mut told = None;
        let began = Instant::now();
        for number in 0.. {
            if began.elapsed() > HEEDED_TIME_MAX {
                break;
            }
            sleep(HEEDED_POLL_EVERY).await;
            let name = format!("frozen-{number}");
            PodTemplate::small().create(cluster.admin(), TROUBLED, &name).await?;
            let seen = cluster
                .until_pod(TROUBLED, &name, "bound or told", |pod| {
                    pod.node().is_some() || pod.waiting_message().is_some()
                })
                .await?;
            if seen.waiting_message().is_some() {
                told = Some((name, seen));
                break;
            }
        }
        let (name, pod) = told.expect("the policy is in force by now");
        let condition = pod.status.unwrap().conditions.unwrap();
        let condition = condition.iter().find(|it| it.type_ == "PodScheduled").unwrap();
        assert_eq!(condition.reason.as_deref(), Some("SchedulerError"), "{condition:?}");
        let message = condition.message.as_deref().unwrap_or_default();
        println!("{message}");
        let parts = ["binding rejected: ", "ValidatingAdmissionPolicy 'freeze'", WORDS];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        let event = cluster.until_event(TROUBLED, &name, "FailedScheduling").await?;
        assert!(event.message.as_deref().unwrap_or_default().contains(WORDS), "{event:?}");
        let explained = scheduler.get(&format!("/api/pods/{TROUBLED}/{name}/explain")).await?;
        assert!(explained.contains(WORDS), "{explained}");
        bindings.delete("freeze", &DeleteParams::default()).await.unwrap();
        policies.delete("freeze", &DeleteParams::default()).await.unwrap();
        cluster.until_pod(TROUBLED, &name, "bound", |pod| pod.node().is_some()).await.map(drop)
    })
    .await;
}
