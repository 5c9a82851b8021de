//! A controller that creates Pods, in its smallest form: what it owns wakes it.

use std::sync::Arc;
use std::time::Duration;

use controller_runtime::{ApiClient, Attempt, Backoff, Controller, Outcome, Owned, Requeue, run};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource as _, ResourceExt as _};
use prometheus::IntCounter;
use serde_json::json;

use crate::world::World;

/// Keeps as many Pods as `spec.replicas` asks for.
struct Replicas;

impl Controller for Replicas {
    type Context = ApiClient;
    type Object = ReplicaSet;
    type Memory = ();

    fn owns() -> Vec<Owned<Self>> {
        vec![Owned::kind::<Pod>()]
    }

    async fn reconcile(
        api: Arc<ApiClient>,
        set: Arc<ReplicaSet>,
        (): (),
        _: Attempt,
    ) -> Outcome<Self> {
        // Far longer than the test: only a wake-up comes sooner.
        let requeue = match adjust(&api, &set).await {
            Ok(()) => Requeue::After(Duration::from_hours(1)),
            Err(_) => Requeue::WithBackoff,
        };
        Outcome { object: None, memory: (), requeue }
    }
}

async fn adjust(api: &ApiClient, set: &ReplicaSet) -> kube::Result<()> {
    let pods: Vec<Pod> = api.owned_by(set).await?;
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let names: Vec<String> =
        (0..wanted).map(|number| format!("{}-{number}", set.name_any())).collect();
    for name in names.iter().filter(|name| pods.iter().all(|pod| pod.name_any() != **name)) {
        let pod = json!({
            "metadata": {
                "namespace": set.namespace(),
                "name": name,
                "ownerReferences": [set.controller_owner_ref(&())],
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        api.create(&serde_json::from_value::<Pod>(pod).map_err(kube::Error::SerdeError)?).await?;
    }
    for pod in pods.iter().filter(|pod| !names.contains(&pod.name_any())) {
        api.delete(pod).await?;
    }
    Ok(())
}

#[tokio::test]
async fn owned_pods_are_created_replaced_and_deleted() {
    let world = World::new().await;
    let api = ApiClient::new(world.client.clone(), "test");
    let reconciles = IntCounter::new("reconciles", "help").unwrap();
    let backoff = Backoff { first: Duration::from_millis(10), max: Duration::from_secs(1) };
    let running =
        tokio::spawn(run::<Replicas>(Arc::new(api.clone()), api.clone(), backoff, reconciles));
    let set = |replicas: u32| {
        let set = json!({
            "metadata": {"namespace": "default", "name": "set"},
            "spec": {"replicas": replicas, "selector": {}},
        });
        serde_json::from_value::<ReplicaSet>(set).unwrap()
    };
    let set = api.create(&set(3)).await.unwrap();
    let pods = async || -> Vec<Pod> { api.owned_by(&set).await.unwrap() };
    world.until("three Pods", async || pods().await.len() == 3).await;
    let first = pods().await.remove(0);
    api.delete(&first).await.unwrap();
    let is_replaced = async || {
        let now = pods().await;
        now.len() == 3 && now.iter().all(|pod| pod.uid() != first.uid())
    };
    world.until("a Pod in the place of the one that went", is_replaced).await;
    assert!(api.delete(&first).await.is_err(), "its successor is another object");
    assert_eq!(pods().await.len(), 3);
    running.abort();
}
