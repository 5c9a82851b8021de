//! One namespace never stops the others: whatever the admission of one tenant does to its Bindings, conditions, Events
//! and victims, the Pods of another are bound and told as if it were not there; and no daemon stops what it does not
//! serve. The rows of docs/isolation.md.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

mod bindings;
mod daemons;
mod evictions;
mod objects;
mod writes;

use std::time::{Duration, Instant};

use e2e::objects::custom::remove_all;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::webhook::Webhook;
use e2e::{Cluster, ControlPlane, Result, observe};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::{Mutex, OnceCell};

/// The tenant whose webhook is slow or down.
const TROUBLED: &str = "team-troubled";
/// The one beside it.
const OTHER: &str = "team-other";

/// Policies and webhooks take effect some time after they were written: mostly at once, but minutes were seen.
const HEEDED_TIME_MAX: Duration = Duration::from_mins(3);
const HEEDED_POLL_EVERY: Duration = Duration::from_millis(200);

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

/// Both tenants, 20 nodes with room for everything.
async fn run(scene: impl AsyncFnOnce(&Cluster) -> Result<()>) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = control_plane().await.cluster().await.unwrap();
    let story = async {
        // What a failed story leaves behind may explain it, so it goes now.
        Webhook::remove_all(cluster.admin()).await?;
        remove_all(cluster.admin()).await?;
        cluster.clear().await?;
        for namespace in [TROUBLED, OTHER] {
            cluster.ensure_namespace(namespace).await?;
        }
        cluster.create_nodes(20, &NodeTemplate::new("1000", "4000Gi")).await?;
        scene(&cluster).await
    };
    if let Err(problem) = story.await {
        panic!("{problem}");
    }
}

async fn bind(cluster: &Cluster, namespace: &str, name: &str) -> Result<Duration> {
    let began = Instant::now();
    PodTemplate::small().create(cluster.admin(), namespace, name).await?;
    cluster.until_pod(namespace, name, "bound", |pod| pod.node().is_some()).await?;
    Ok(began.elapsed())
}

/// How long it takes until so many new Pods of the namespace are bound.
async fn bind_many(
    cluster: &Cluster,
    namespace: &str,
    prefix: &str,
    count: usize,
) -> Result<Duration> {
    let began = Instant::now();
    cluster.create_pods(namespace, prefix, count, &PodTemplate::small()).await?;
    until_bound(cluster, namespace, prefix, count).await?;
    Ok(began.elapsed())
}

async fn until_bound(cluster: &Cluster, namespace: &str, prefix: &str, count: usize) -> Result<()> {
    let is_bound = |(key, pod): (&String, &Pod)| {
        key.starts_with(&format!("{namespace}/{prefix}-")) && pod.node().is_some()
    };
    let pods = cluster.pods(namespace);
    let awaited = format!("{count} Pods {namespace}/{prefix}-… to be bound");
    let patience = Duration::from_mins(2);
    observe::until_pods(&pods, &awaited, patience, |seen| {
        seen.iter().filter(|it| is_bound(*it)).count() >= count
    })
    .await
    .map(drop)
}
