//! Every call to the API server, each with a deadline.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

/// A call that takes longer counts as lost, and its reconcile is retried.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Objects of one page of metadata: about half a megabyte.
const PAGE_OBJECTS: u32 = 500;
/// The API server refuses longer messages of Events.
const MESSAGE_BYTES_MAX: usize = 1024;

/// An object that controllers own.
pub(crate) trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<T> Object for T where
    T: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static
{
}

async fn bounded<T>(call: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    match timeout(CALL_TIMEOUT, call).await {
        Ok(reply) => reply,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// Whether the outcome of a write is certain: it succeeded, or the API server has refused it.
pub(crate) fn is_clear<T>(written: &kube::Result<T>) -> bool {
    match written {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => (400..500).contains(&status.code) && status.code != 408,
        Err(_) => false,
    }
}

fn api<K: Object>(client: &Client, object: &K) -> Api<K> {
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

pub(crate) async fn cluster_uid(client: &Client) -> kube::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = bounded(namespaces.get("kube-system")).await?;
    Ok(system.metadata.uid.unwrap_or_default())
}

/// The UIDs of every object of a kind, by a consistent read. The pages after the first show the
/// same moment as the first, or the API server refuses them.
pub(crate) async fn uids<K: Object>(client: &Client) -> kube::Result<BTreeSet<String>> {
    let all: Api<K> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE_OBJECTS);
    let mut uids = BTreeSet::new();
    loop {
        let page = bounded(all.list_metadata(&params)).await?;
        uids.extend(page.items.iter().filter_map(ResourceExt::uid));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(uids),
        }
    }
}

/// Every object of a kind in one namespace, by a consistent read.
pub(crate) async fn list_in<K: Object>(client: &Client, namespace: &str) -> kube::Result<Vec<K>> {
    let some: Api<K> = Api::namespaced(client.clone(), namespace);
    Ok(bounded(some.list(&ListParams::default())).await?.items)
}

/// Changes metadata, provided that the object has not changed meanwhile.
pub(crate) async fn patch_metadata<K: Object>(
    client: &Client,
    object: &K,
    mut metadata: Value,
) -> kube::Result<K> {
    metadata["uid"] = json!(object.uid());
    metadata["resourceVersion"] = json!(object.resource_version());
    let patch = json!({ "metadata": metadata });
    let params = PatchParams { field_manager: Some(manager()), ..PatchParams::default() };
    let name = object.name_any();
    bounded(api(client, object).patch(&name, &params, &Patch::Merge(patch))).await
}

/// Server-side apply of the controllers' status fields. The UID is a precondition, so that a successor under the same
/// name is not written to.
pub(crate) async fn apply_status<K: Object>(
    client: &Client,
    object: &K,
    status: Value,
) -> kube::Result<K> {
    let metadata = json!({ "name": object.name_any(), "uid": object.uid() });
    apply(client, object, metadata, status).await
}

/// The same, provided that the object has not changed meanwhile.
pub(crate) async fn apply_status_unless_changed<K: Object>(
    client: &Client,
    object: &K,
    status: Value,
) -> kube::Result<K> {
    let metadata = json!({
        "name": object.name_any(),
        "uid": object.uid(),
        "resourceVersion": object.resource_version(),
    });
    apply(client, object, metadata, status).await
}

async fn apply<K: Object>(
    client: &Client,
    object: &K,
    metadata: Value,
    status: Value,
) -> kube::Result<K> {
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": metadata,
        "status": status,
    });
    let params = PatchParams::apply(crds::CONTROLLERS_MANAGER).force();
    let name = object.name_any();
    bounded(api(client, object).patch_status(&name, &params, &Patch::Apply(patch))).await
}

/// Posts an Event. A lost Event is logged, and nothing else depends on it.
pub(crate) async fn post_event<K: Object>(
    client: &Client,
    object: &K,
    warning: bool,
    reason: &str,
    message: &str,
) {
    let event = event(object, warning, reason, message, Timestamp::now());
    let namespace = object.namespace().unwrap_or_default();
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    let posted = match serde_json::from_value(event) {
        Ok(event) => bounded(events.create(&PostParams::default(), &event)).await.map(|_| ()),
        Err(error) => Err(kube::Error::SerdeError(error)),
    };
    if let Err(error) = posted {
        tracing::warn!(%error, reason, "an Event was lost");
    }
}

fn event<K: Object>(
    object: &K,
    warning: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    /// Object names have at most 253 characters; the time takes 17 of them.
    const PREFIX_BYTES_MAX: usize = 230;
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let prefix = name.get(..PREFIX_BYTES_MAX).unwrap_or(&name).trim_end_matches(['.', '-']);
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    let at = format!("{now:.0}");
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "namespace": namespace,
            "name": format!("{prefix}.{:x}", now.as_nanosecond()),
        },
        "involvedObject": {
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "namespace": namespace,
            "name": name,
            "uid": object.uid(),
        },
        "type": if warning { "Warning" } else { "Normal" },
        "reason": reason,
        "message": &message[..end],
        "source": { "component": crds::CONTROLLERS_MANAGER },
        "reportingComponent": crds::CONTROLLERS_MANAGER,
        "reportingInstance": crds::CONTROLLERS_MANAGER,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    })
}

/// Records that a backend has answered just now.
pub(crate) async fn renew_backend_lease(
    client: &Client,
    name: &str,
    identity: &str,
    age_max: Duration,
) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), crds::SYSTEM_NAMESPACE);
    let patch = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name },
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": age_max.as_secs().max(1),
            "renewTime": format!("{:.6}", Timestamp::now()),
        },
    });
    let params = PatchParams::apply(crds::CONTROLLERS_MANAGER).force();
    bounded(leases.patch(name, &params, &Patch::Apply(patch))).await.map(|_| ())
}

fn manager() -> String {
    crds::CONTROLLERS_MANAGER.to_owned()
}
