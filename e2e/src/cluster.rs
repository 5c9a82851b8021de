//! What a scenario needs of a cluster, whichever server serves its API.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::SYSTEM_NAMESPACE;
use crate::control_plane::AuditLog;
use crate::error::{Doing as _, Error, Result};
use crate::objects::bundles::{all_bundles, bundles_in};
use crate::objects::corridors::{all_corridors, corridors_in};
use crate::objects::leases::{BackendLease, CORRD_LEASE, MEMQOSD_LEASE};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;
use crate::observe::{PATIENCE, Seen, until, until_pods};
use crate::scheduler_process::SchedulerProcess;

/// Enough to keep the API server busy, not so many that its queues refuse some.
const CREATING_AT_ONCE: usize = 16;

/// An API server to act on as administrator, and how to run the scheduler against it.
#[derive(Clone)]
pub struct Cluster {
    admin: Client,
    scheduler_kubeconfig: PathBuf,
    scheduler_binary: PathBuf,
    audit: Option<AuditLog>,
}

impl Cluster {
    pub fn new(admin: Client, scheduler_kubeconfig: PathBuf, scheduler_binary: PathBuf) -> Self {
        Self { admin, scheduler_kubeconfig, scheduler_binary, audit: None }
    }

    /// Scenarios check more where the API server keeps an audit log.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditLog) -> Self {
        self.audit = Some(audit);
        self
    }

    pub fn admin(&self) -> &Client {
        &self.admin
    }

    pub fn audit(&self) -> Option<&AuditLog> {
        self.audit.as_ref()
    }

    pub fn scheduler_kubeconfig(&self) -> &Path {
        &self.scheduler_kubeconfig
    }

    /// The program under test.
    pub fn scheduler_binary(&self) -> &Path {
        &self.scheduler_binary
    }

    /// Starts the scheduler under test and waits until it is ready.
    pub async fn start_scheduler(&self) -> Result<SchedulerProcess> {
        self.start_scheduler_with(&[]).await
    }

    /// The same, with more flags.
    pub async fn start_scheduler_with(&self, extra: &[&str]) -> Result<SchedulerProcess> {
        SchedulerProcess::start_binary(&self.scheduler_binary, &self.scheduler_kubeconfig, extra)
            .await
    }

    /// The same, with its own simulated daemons and the controllers that work with them.
    pub async fn start_scheduler_with_daemons(&self) -> Result<SchedulerProcess> {
        self.start_scheduler_with(&["--backends", "simulated"]).await
    }

    pub fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// Makes sure of a namespace. A model of the API may do without them.
    pub async fn ensure_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({ "metadata": { "name": name } });
        self.ensure::<Namespace>(namespace, &format!("creating Namespace {name}")).await
    }

    /// Makes sure of a priority class. A model of the API may do without them.
    pub async fn ensure_priority_class(&self, name: &str, value: i32) -> Result<()> {
        let class = json!({ "metadata": { "name": name }, "value": value });
        self.ensure::<PriorityClass>(class, &format!("creating PriorityClass {name}")).await
    }

    async fn ensure<K>(&self, object: serde_json::Value, doing: &str) -> Result<()>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug,
        K: Serialize + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).doing(doing)?;
        match Api::<K>::all(self.admin.clone()).create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            created => created.map(drop).doing(doing),
        }
    }

    /// Creates `node-1` to `node-<count>`.
    pub async fn create_nodes(&self, count: usize, template: &NodeTemplate) -> Result<()> {
        self.create_nodes_numbered(1..=count, template).await
    }

    /// Creates `node-<number>` for each number.
    pub async fn create_nodes_numbered(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        template: &NodeTemplate,
    ) -> Result<()> {
        stream::iter(numbers)
            .map(|number| async move {
                template.create(&self.admin, &format!("node-{number}")).await.map(drop)
            })
            .buffer_unordered(CREATING_AT_ONCE)
            .try_collect()
            .await
    }

    /// Creates `<prefix>-0` to `<prefix>-<count - 1>`, in no particular order.
    pub async fn create_pods(
        &self,
        namespace: &str,
        prefix: &str,
        count: usize,
        template: &PodTemplate,
    ) -> Result<Vec<Pod>> {
        stream::iter(0..count)
            .map(|index| async move {
                template.create(&self.admin, namespace, &format!("{prefix}-{index}")).await
            })
            .buffer_unordered(CREATING_AT_ONCE)
            .try_collect()
            .await
    }

    /// Keeps the backend of Corridors alive while the result is held.
    pub async fn hold_corrd_lease(&self) -> Result<BackendLease> {
        self.ensure_namespace(SYSTEM_NAMESPACE).await?;
        BackendLease::hold(&self.admin, CORRD_LEASE).await
    }

    /// Keeps the backend of MemoryBundles alive while the result is held.
    pub async fn hold_memqosd_lease(&self) -> Result<BackendLease> {
        self.ensure_namespace(SYSTEM_NAMESPACE).await?;
        BackendLease::hold(&self.admin, MEMQOSD_LEASE).await
    }

    /// Waits until one Pod is as `done` says, and returns it so.
    pub async fn until_pod(
        &self,
        namespace: &str,
        name: &str,
        awaited: &str,
        mut done: impl FnMut(&Pod) -> bool,
    ) -> Result<Pod> {
        let key = format!("{namespace}/{name}");
        let awaited = format!("Pod {key} to be {awaited}");
        let pods = self.pods(namespace);
        let done = |seen: &Seen<Pod>| seen.get(&key).is_some_and(&mut done);
        let mut seen = until_pods(&pods, &awaited, PATIENCE, done).await?;
        seen.remove(&key).ok_or_else(|| Error::malformed(awaited, "it vanished"))
    }

    /// Waits until there is an Event with this reason about the Pod, and returns it.
    pub async fn until_event(&self, namespace: &str, pod: &str, reason: &str) -> Result<Event> {
        let events: Api<Event> = Api::namespaced(self.admin.clone(), namespace);
        let awaited = format!("an Event {reason} about Pod {namespace}/{pod}");
        let is_it = |event: &Event| {
            event.involved_object.name.as_deref() == Some(pod)
                && event.reason.as_deref() == Some(reason)
        };
        let seen = until(&events, &awaited, PATIENCE, |seen| seen.values().any(is_it)).await?;
        let found = seen.into_values().find(is_it);
        found.ok_or_else(|| Error::malformed(awaited, "it vanished"))
    }

    /// Removes what scenarios create, so that the next one starts from an empty cluster.
    pub async fn clear(&self) -> Result<()> {
        let doing = "clearing the cluster";
        let now = DeleteParams::default().grace_period(0);
        let everything = ListParams::default();
        let pods: Api<Pod> = Api::all(self.admin.clone());
        let pods = pods.list(&everything).await.doing(doing)?;
        let namespaces: BTreeSet<_> = pods.iter().filter_map(ResourceExt::namespace).collect();
        for namespace in namespaces {
            let pods = self.pods(&namespace);
            pods.delete_collection(&now, &everything).await.doing(doing)?;
        }
        let nodes: Api<Node> = Api::all(self.admin.clone());
        nodes.delete_collection(&now, &everything).await.doing(doing)?;
        let leases: Api<Lease> = Api::namespaced(self.admin.clone(), SYSTEM_NAMESPACE);
        leases.delete_collection(&now, &everything).await.doing(doing)?;
        for corridor in all_corridors(&self.admin).list(&everything).await.doing(doing)? {
            let corridors = corridors_in(&self.admin, &corridor.namespace().unwrap_or_default());
            corridors.delete(&corridor.name_any(), &now).await.doing(doing)?;
        }
        for bundle in all_bundles(&self.admin).list(&everything).await.doing(doing)? {
            let bundles = bundles_in(&self.admin, &bundle.namespace().unwrap_or_default());
            bundles.delete(&bundle.name_any(), &now).await.doing(doing)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A client has nothing to show.
        f.debug_struct("Cluster")
            .field("scheduler_kubeconfig", &self.scheduler_kubeconfig)
            .field("scheduler_binary", &self.scheduler_binary)
            .field("audit", &self.audit)
            .finish_non_exhaustive()
    }
}
