//! Calls to the API server, each with a deadline.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event as CoreEvent, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::events::{Event, EventBudget};

/// A call that takes longer counts as lost, and its reconcile is retried.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Objects of one page of metadata: about half a megabyte.
const PAGE_OBJECTS: u32 = 500;
/// The API server refuses longer messages of Events.
const MESSAGE_BYTES_MAX: usize = 1024;

/// A namespaced object that a controller reconciles.
pub trait Object:
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
pub fn is_certain<T>(written: &kube::Result<T>) -> bool {
    match written {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => (400..500).contains(&status.code) && status.code != 408,
        Err(_) => false,
    }
}

/// A client with a deadline for each call, and with the field manager of its writes.
#[derive(Clone)]
pub struct ApiClient {
    client: Client,
    manager: &'static str,
}

impl Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiClient").field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl ApiClient {
    /// `manager`: field manager of every write, and component of every Event.
    pub fn new(client: Client, manager: &'static str) -> Self {
        Self { client, manager }
    }

    /// Objects of all namespaces, for watches.
    pub fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    fn namespaced<K: Object>(&self, object: &K) -> Api<K> {
        Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default())
    }

    /// The UID of the namespace kube-system, which stands for the cluster.
    pub async fn cluster_uid(&self) -> kube::Result<String> {
        let system = bounded(self.all::<Namespace>().get("kube-system")).await?;
        Ok(system.metadata.uid.unwrap_or_default())
    }

    /// The UIDs of every object of a kind, by a consistent read. The pages after the first show the same moment as the
    /// first, or the API server refuses them.
    pub async fn uids<K: Object>(&self) -> kube::Result<BTreeSet<String>> {
        let all = self.all::<K>();
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
    pub async fn list_in<K: Object>(&self, namespace: &str) -> kube::Result<Vec<K>> {
        let some: Api<K> = Api::namespaced(self.client.clone(), namespace);
        Ok(bounded(some.list(&ListParams::default())).await?.items)
    }

    /// The objects of a kind whose controller ownerReference names this object, by a consistent read of its namespace.
    pub async fn owned_by<K: Object>(&self, owner: &impl Object) -> kube::Result<Vec<K>> {
        let uid = owner.uid();
        let is_owned = |object: &K| {
            let mut references = object.owner_references().iter();
            references.any(|it| it.controller == Some(true) && Some(&it.uid) == uid.as_ref())
        };
        let all = self.list_in::<K>(&owner.namespace().unwrap_or_default()).await?;
        Ok(all.into_iter().filter(is_owned).collect())
    }

    /// Creates an object in its namespace.
    pub async fn create<K: Object + Serialize>(&self, object: &K) -> kube::Result<K> {
        let params =
            PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        bounded(self.namespaced(object).create(&params, object)).await
    }

    /// Deletes this object, and no successor under its name.
    pub async fn delete<K: Object>(&self, object: &K) -> kube::Result<()> {
        let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        bounded(self.namespaced(object).delete(&object.name_any(), &params)).await.map(|_| ())
    }

    /// Changes metadata, provided that the object has not changed meanwhile.
    pub async fn patch_metadata<K: Object>(
        &self,
        object: &K,
        mut metadata: Value,
    ) -> kube::Result<K> {
        metadata["uid"] = json!(object.uid());
        metadata["resourceVersion"] = json!(object.resource_version());
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let field_manager = Some(self.manager.to_owned());
        let params = PatchParams { field_manager, ..PatchParams::default() };
        bounded(self.namespaced(object).patch(&object.name_any(), &params, &patch)).await
    }

    /// Server-side apply of the manager's status fields. The UID is a precondition, so that a successor under the same
    /// name is not written to.
    pub async fn apply_status<K: Object>(&self, object: &K, status: Value) -> kube::Result<K> {
        let metadata = json!({ "name": object.name_any(), "uid": object.uid() });
        self.apply(object, metadata, status).await
    }

    /// The same, provided that the object has not changed meanwhile.
    pub async fn apply_status_unless_changed<K: Object>(
        &self,
        object: &K,
        status: Value,
    ) -> kube::Result<K> {
        let metadata = json!({
            "name": object.name_any(),
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
        });
        self.apply(object, metadata, status).await
    }

    async fn apply<K: Object>(
        &self,
        object: &K,
        metadata: Value,
        status: Value,
    ) -> kube::Result<K> {
        let patch = Patch::Apply(json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": metadata,
            "status": status,
        }));
        let params = PatchParams::apply(self.manager).force();
        bounded(self.namespaced(object).patch_status(&object.name_any(), &params, &patch)).await
    }

    /// Posts the Events, as far as the budget allows.
    pub async fn emit<K: Object>(
        &self,
        object: &K,
        events: impl IntoIterator<Item = Event>,
        budget: &mut EventBudget,
    ) {
        for event in events {
            if budget.take(Timestamp::now()) {
                self.post_event(object, &event).await;
            }
        }
    }

    /// Posts an Event. A lost Event is logged, and nothing else depends on it.
    pub async fn post_event<K: Object>(&self, object: &K, event: &Event) {
        let namespace = object.namespace().unwrap_or_default();
        let events: Api<CoreEvent> = Api::namespaced(self.client.clone(), &namespace);
        let posted = match serde_json::from_value(self.event(object, event, Timestamp::now())) {
            Ok(event) => bounded(events.create(&PostParams::default(), &event)).await.map(|_| ()),
            Err(error) => Err(kube::Error::SerdeError(error)),
        };
        if let Err(error) = posted {
            tracing::warn!(%error, reason = event.reason, "an Event was lost");
        }
    }

    fn event<K: Object>(&self, object: &K, event: &Event, now: Timestamp) -> Value {
        /// Object names have at most 253 characters; the time takes 17 of them.
        const PREFIX_BYTES_MAX: usize = 230;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let prefix = name.get(..PREFIX_BYTES_MAX).unwrap_or(&name).trim_end_matches(['.', '-']);
        let end = event.message.floor_char_boundary(MESSAGE_BYTES_MAX);
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
            "type": if event.is_warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "message": &event.message[..end],
            "source": { "component": self.manager },
            "reportingComponent": self.manager,
            "reportingInstance": self.manager,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        })
    }

    /// Renews a Lease for `age_max`, or creates it.
    pub async fn renew_lease(
        &self,
        namespace: &str,
        name: &str,
        identity: &str,
        age_max: Duration,
    ) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
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
        let params = PatchParams::apply(self.manager).force();
        bounded(leases.patch(name, &params, &Patch::Apply(patch))).await.map(|_| ())
    }
}
