//! A generated cluster on the API server.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use random_clusters::{GeneratedCluster, NAMESPACES, Other, PlacedPod, key_of, name_of};
use serde_json::{Value, json};

use super::api::Api;
use super::volumes;
use crate::error::Result;

/// Enough to keep the API server busy.
pub(super) const WRITING_AT_ONCE: usize = 8;
/// Without a kubelet, a Pod that has time to end never does.
const STAYS_SECONDS: u32 = 30;
const AT_ONCE: u32 = 0;

/// Everything that a cluster has of its own, in each namespace.
const COLLECTIONS: [(&str, &str); 5] = [
    ("api/v1", "pods"),
    ("api/v1", "services"),
    ("apis/apps/v1", "replicasets"),
    ("apis/apps/v1", "statefulsets"),
    ("apis/policy/v1", "poddisruptionbudgets"),
];

fn collection(group: &str, namespace: &str, resource: &str) -> String {
    format!("{group}/namespaces/{namespace}/{resource}")
}

pub(super) fn pods_of(namespace: &str) -> String {
    collection("api/v1", namespace, "pods")
}

/// Removes all that an earlier cluster left.
pub(super) async fn clear(api: &Api) -> Result<()> {
    let all = NAMESPACES.iter().flat_map(|namespace| {
        COLLECTIONS.iter().map(|(group, resource)| collection(group, namespace, resource))
    });
    let paths: Vec<String> = all.chain(["api/v1/nodes".to_owned()]).collect();
    stream::iter(paths)
        .map(|path| async move { api.delete(&path, AT_ONCE).await })
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect::<()>()
        .await?;
    volumes::clear(api).await
}

/// Creates a cluster where nothing is.
pub(super) async fn build(api: &Api, cluster: &GeneratedCluster) -> Result<()> {
    for (name, labels) in &cluster.namespaces {
        let patch = json!({"metadata": {"labels": labels}});
        api.merge(&format!("api/v1/namespaces/{name}"), &patch).await?;
    }
    stream::iter(&cluster.nodes)
        .map(|node| async move { api.create("api/v1/nodes", node).await.map(drop) })
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect::<()>()
        .await?;
    volumes::build(api, &cluster.volumes).await?;
    stream::iter(&cluster.others)
        .map(|other| create_other(api, other))
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect::<()>()
        .await?;
    stream::iter(&cluster.placed)
        .map(|pod| create_placed(api, cluster, pod))
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect()
        .await
}

async fn create_other(api: &Api, other: &Other) -> Result<()> {
    let metadata = &other.object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let path = collection(other.group, namespace, other.resource);
    api.create(&path, &other.object).await?;
    if other.status.is_null() {
        return Ok(());
    }
    let name = metadata["name"].as_str().unwrap_or_default();
    let status = json!({"status": other.status});
    api.merge(&format!("{path}/{name}/status"), &status).await.map(drop)
}

async fn create_placed(api: &Api, cluster: &GeneratedCluster, pod: &PlacedPod) -> Result<()> {
    let path = path_of(&pod.object);
    let (pods, _) = path.rsplit_once('/').unwrap_or_default();
    let stored = api.create(pods, &pod.object).await?;
    let claims = volumes::claims_of_pod(&cluster.volumes.claims, &pod.object);
    volumes::adopt(api, claims, stored["metadata"]["uid"].as_str().unwrap_or_default()).await?;
    api.merge(&format!("{path}/status"), &json!({"status": pod.status})).await?;
    if pod.is_terminating {
        api.delete(&path, STAYS_SECONDS).await?;
    }
    Ok(())
}

pub(super) fn path_of(pod: &Value) -> String {
    let (namespace, name) = name_of(pod);
    format!("{}/{name}", pods_of(namespace))
}

pub(super) async fn delete_pod(api: &Api, pod: &Value) -> Result<()> {
    api.delete(&path_of(pod), AT_ONCE).await
}

/// Which of the placed Pods are being deleted, or gone, without our doing.
pub(super) async fn victims(api: &Api, cluster: &GeneratedCluster) -> Result<Vec<String>> {
    let listed = api.get("api/v1/pods").await?;
    let untouched: Vec<String> = listed["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .map(key_of)
        .collect();
    let placed = cluster.placed.iter().filter(|pod| !pod.is_terminating);
    Ok(placed.map(PlacedPod::key).filter(|key| !untouched.contains(key)).collect())
}

/// Puts back the placed Pods that were deleted.
pub(super) async fn restore(
    api: &Api,
    cluster: &GeneratedCluster,
    victims: &[String],
) -> Result<()> {
    for pod in cluster.placed.iter().filter(|pod| victims.contains(&pod.key())) {
        delete_pod(api, &pod.object).await?;
        create_placed(api, cluster, pod).await?;
    }
    Ok(())
}
