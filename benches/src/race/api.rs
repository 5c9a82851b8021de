//! Many objects at once, as JSON.

use std::future::Future;

use e2e::error::Doing as _;
use e2e::{Error, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

/// Enough to keep the API server busy.
const AT_ONCE: usize = 32;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Creates them all, in no particular order.
pub async fn create_all(client: &Client, objects: Vec<Value>) -> Result<()> {
    stream::iter(objects)
        .map(|object| async move { create(client, &object).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

pub async fn create(client: &Client, object: &Value) -> Result<()> {
    send(client, Method::POST, &collection_of(object)?, JSON, object).await
}

/// The same; that it is there already is as good.
pub async fn ensure(client: &Client, object: &Value) -> Result<()> {
    match create(client, object).await {
        Err(problem) if problem.api_code() == Some(409) => Ok(()),
        outcome => outcome,
    }
}

/// Deletes at once, without waiting for a kubelet; that it is gone already is as good.
pub async fn delete(client: &Client, object: &Value) -> Result<()> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    delete_path(client, &format!("{}/{name}", collection_of(object)?)).await
}

/// Deletes all Pods of a namespace whose names begin so, one by one but many at once: a delete of the
/// collection goes through it with a single worker.
pub async fn delete_pods(client: &Client, namespace: &str, prefixes: &[&str]) -> Result<usize> {
    let path = pods_of(namespace);
    let names: Vec<String> = names(client, &path)
        .await?
        .into_iter()
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    let count = names.len();
    each_of(&path, names, async |path| delete_path(client, &path).await).await?;
    Ok(count)
}

/// Deletes everything in a collection, whatever a finalizer says; returns how much there was.
pub async fn delete_all_by_force(client: &Client, collection: &str) -> Result<usize> {
    let names = names(client, collection).await?;
    let count = names.len();
    each_of(collection, names, async |path| {
        delete_path(client, &path).await?;
        match send(
            client,
            Method::PATCH,
            &path,
            MERGE_PATCH,
            &json!({"metadata": {"finalizers": null}}),
        )
        .await
        {
            Err(problem) if problem.api_code() == Some(404) => Ok(()),
            outcome => outcome,
        }
    })
    .await?;
    Ok(count)
}

async fn each_of<F: Future<Output = Result<()>>>(
    collection: &str,
    names: Vec<String>,
    act: impl Fn(String) -> F,
) -> Result<()> {
    stream::iter(names)
        .map(|name| act(format!("{collection}/{name}")))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

pub async fn pod_names(client: &Client, namespace: &str) -> Result<Vec<String>> {
    names(client, &pods_of(namespace)).await
}

fn pods_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

async fn names(client: &Client, collection: &str) -> Result<Vec<String>> {
    let doing = format!("listing {collection}");
    let request = Request::get(format!("{collection}?resourceVersion="))
        // Names are enough, and a fraction of the whole.
        .header("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
        .body(Vec::new())
        .map_err(|problem| Error::malformed(doing.clone(), problem))?;
    let list: Names = client.request(request).await.doing(doing)?;
    Ok(list.items.into_iter().flatten().map(|item| item.metadata.name).collect())
}

/// The version of the whole cluster now: watches can go on from here.
pub async fn version_now(client: &Client) -> Result<String> {
    let doing = "asking for the newest resourceVersion";
    let request = Request::get("/api/v1/namespaces?limit=1")
        .body(Vec::new())
        .map_err(|problem| Error::malformed(doing, problem))?;
    let list: Names = client.request(request).await.doing(doing)?;
    Ok(list.metadata.resource_version)
}

async fn delete_path(client: &Client, path: &str) -> Result<()> {
    let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    match send(client, Method::DELETE, path, JSON, &now).await {
        Err(problem) if problem.api_code() == Some(404) => Ok(()),
        outcome => outcome,
    }
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    written: &str,
    body: &Value,
) -> Result<()> {
    let doing = || format!("{method} {path}");
    let request = Request::builder()
        .method(method.clone())
        .uri(path)
        .header("Content-Type", written)
        .body(body.to_string().into_bytes())
        .map_err(|problem| Error::malformed(doing(), problem))?;
    client.request_text(request).await.doing(doing()).map(drop)
}

/// Where objects of this kind are.
fn collection_of(object: &Value) -> Result<String> {
    let namespace = object["metadata"]["namespace"].as_str();
    let within = |group: &str, plural: &str| match namespace {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
        None => format!("{group}/{plural}"),
    };
    Ok(match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => within("/api/v1", "namespaces"),
        "Node" => within("/api/v1", "nodes"),
        "Pod" => within("/api/v1", "pods"),
        "Service" => within("/api/v1", "services"),
        "PersistentVolume" => within("/api/v1", "persistentvolumes"),
        "PersistentVolumeClaim" => within("/api/v1", "persistentvolumeclaims"),
        "StorageClass" => within("/apis/storage.k8s.io/v1", "storageclasses"),
        "CSINode" => within("/apis/storage.k8s.io/v1", "csinodes"),
        "PriorityClass" => within("/apis/scheduling.k8s.io/v1", "priorityclasses"),
        "Lease" => within("/apis/coordination.k8s.io/v1", "leases"),
        "Corridor" => within("/apis/corridoros.io/v1alpha1", "corridors"),
        "MemoryBundle" => within("/apis/corridoros.io/v1alpha1", "memorybundles"),
        other => {
            let known = "add it to `collection_of`";
            return Err(Error::malformed(format!("creating a {other:?}"), known));
        }
    })
}

/// How many volumes there are in a phase.
pub async fn volumes_in(client: &Client, phase: &str) -> Result<usize> {
    let doing = "listing volumes";
    let request = Request::get("/api/v1/persistentvolumes?resourceVersion=")
        .body(Vec::new())
        .map_err(|problem| Error::malformed(doing, problem))?;
    let list: VolumeList = client.request(request).await.doing(doing)?;
    Ok(list.items.iter().filter(|volume| volume.status.phase == phase).count())
}

#[derive(Deserialize)]
struct VolumeList {
    items: Vec<Volume>,
}

#[derive(Deserialize)]
struct Volume {
    status: VolumeStatus,
}

#[derive(Deserialize)]
struct VolumeStatus {
    #[serde(default)]
    phase: String,
}

#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    metadata: ListMetadata,
    /// `null` when there are none.
    items: Option<Vec<Named>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: NameOnly,
}

#[derive(Deserialize)]
struct NameOnly {
    name: String,
}
