//! An in-memory model of the Kubernetes API, served over HTTP from within the process.
//!
//! Clients (kube-rs, kubectl) work against it with nothing installed. It follows kube-apiserver 1.36
//! in what a scheduler and its controllers depend on: resourceVersions, lists in pages, watches and their
//! history, preconditions, every kind of patch, status subresources, finalizers, Pod rules, and the
//! Binding as one transaction. `e2e/tests/in_memory_api.rs` plays random calls to both and compares
//! every reply.
//!
//! Where it differs, on purpose:
//! - no authentication, authorization or admission policies, and no TLS;
//! - no kubelet, so a deleted Pod is gone at once, also when it was bound;
//! - no controllers but one: a deleted namespace takes its objects along. No garbage collection by
//!   owner, no node lifecycle (hence no `not-ready` taint on new Nodes), no ServiceAccount tokens;
//! - Services get no addresses;
//! - server-side apply merges, but keeps no record of field owners;
//! - custom resources get defaults and lose unknown fields, but are not validated; of built-in types,
//!   only what a scheduler trips over is;
//! - a watch from a version that is yet to come is `410 Expired`, because it can only stem from a
//!   server that was here before; a list of one is refused at once instead of after three seconds;
//! - eviction, protobuf (but for what kubectl sends) and several versions of one custom resource are
//!   not there, and say so.
//!
//! And in how it says the same (the names are those of the comparison):
//! - *empty fields*: the real server shows some that are null or empty, and leaves out others;
//! - *kinds of items*: each item of a list says its apiVersion and kind;
//! - *age of lists from the cache*: a list that need not be the latest is the latest nevertheless;
//! - *differences within a Pod*: a refused change is not shown as a comparison of Go structs;
//! - *words about what cannot be read*: they are not those of Go's decoders.
//!
//! Tests can make it fail on purpose: see [`ApiServer::inject`] and what follows it.

mod catalog;
mod columns;
mod custom;
mod defaults;
mod discovery;
mod events;
mod faults;
mod history;
mod json;
mod json_patch;
mod jsonpath;
mod naming;
mod objects;
mod pages;
mod patch;
mod pod;
mod protobuf;
mod quantity;
mod refusal;
mod render;
mod request;
mod selector;
mod server;
mod store;
mod stored;
mod watch;
mod write;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::catalog::Catalog;
use crate::faults::Faults;
pub use crate::faults::{Fault, Matching, Verb};
use crate::request::Target;
use crate::server::Server;
use crate::store::{Action, Store};
pub use crate::store::{WRITE_LOG_MAX, WriteRecord};

/// Requests under way get this long to end when the server stops; watches end at once.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct ApiServer {
    addr: SocketAddr,
    store: Arc<Store>,
    faults: Arc<Faults>,
    stopping: tokio::sync::watch::Sender<bool>,
    task: Option<JoinHandle<std::io::Result<()>>>,
}

impl ApiServer {
    /// Serves on `addr` (loopback; port 0 = any) until dropped or stopped.
    pub async fn start(
        addr: SocketAddr,
        custom_resources: Vec<CustomResourceDefinition>,
    ) -> std::io::Result<ApiServer> {
        if !addr.ip().is_loopback() {
            let why = format!(
                "{addr} is not a loopback address, and this server asks for no credentials"
            );
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
        }
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let catalog = Arc::new(Catalog::new(&custom_resources));
        let store = Arc::new(Store::new(catalog.clone()));
        furnish(&catalog, &store, &custom_resources);
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let faults = Arc::new(Faults::default());
        let server = Server::new(catalog, store.clone(), faults.clone(), stopped.clone());
        let server = Arc::new(server);
        let router = Router::new().fallback(server::handle).with_state(server);
        let task = tokio::spawn(async move {
            let mut stopped = stopped;
            let until = async move {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            // Without this the kernel may hold back small watch events for 40 ms.
            let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
            axum::serve(listener, router).with_graceful_shutdown(until).await
        });
        Ok(ApiServer { addr, store, faults, stopping, task: Some(task) })
    }

    /// Where it listens, e.g. `http://127.0.0.1:6443`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// A kubeconfig, as YAML, that leads kubectl and kube-rs here.
    pub fn kubeconfig(&self) -> String {
        let url = self.url();
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: sim\n\
             \x20 cluster:\n\
             \x20   server: {url}\n\
             users:\n\
             - name: sim\n\
             \x20 user: {{}}\n\
             contexts:\n\
             - name: sim\n\
             \x20 context:\n\
             \x20   cluster: sim\n\
             \x20   user: sim\n\
             \x20   namespace: default\n\
             current-context: sim\n"
        )
    }

    /// Every accepted write in order, the latest [`WRITE_LOG_MAX`] at most.
    pub fn write_log(&self) -> Vec<WriteRecord> {
        self.store.write_log()
    }

    /// The next `times` requests that match meet with `fault`. Faults that were asked for earlier come
    /// first; one request meets one.
    pub fn inject(&self, matching: Matching, fault: Fault, times: usize) {
        self.faults.inject(matching, fault, times);
    }

    /// How many times an injected fault is still to come.
    pub fn faults_waiting(&self) -> usize {
        self.faults.waiting()
    }

    /// Breaks off the connection of every running watch that matches; says how many.
    pub fn cut_watches(&self, matching: &Matching) -> usize {
        self.faults.cut_watches(matching)
    }

    /// From now on, watches that match say nothing, as if their connections were dead.
    pub fn silence_watches(&self, matching: Matching) {
        self.faults.silence_watches(matching);
    }

    /// Every silenced watch goes on where it was.
    pub fn end_silence(&self) {
        self.faults.end_silence();
    }

    /// Forgets the past, as etcd does when it is compacted: watches, continue tokens and lists of an
    /// earlier version get `410 Expired`.
    pub fn expire_history(&self) {
        self.store.forget_history();
    }

    /// Stops serving: watches end at once, other requests may finish.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        if let Some(mut task) = self.task.take()
            && tokio::time::timeout(STOP_GRACE, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
    }
}

const IN_THE_CLUSTER: &str = "Used for system critical pods that must run in the cluster, but can be \
                              moved to another node if necessary.";
const ON_THE_NODE: &str =
    "Used for system critical pods that must not be moved from their current node.";

/// What a fresh cluster holds: the system's namespaces and priority classes, and the given custom
/// resource definitions.
fn furnish(catalog: &Catalog, store: &Store, custom_resources: &[CustomResourceDefinition]) {
    let namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"];
    let namespaces = namespaces.map(|name| json!({ "metadata": { "name": name } }));
    let classes = [
        ("system-cluster-critical", 2_000_000_000, IN_THE_CLUSTER),
        ("system-node-critical", 2_000_001_000, ON_THE_NODE),
    ];
    let classes = classes.map(|(name, value, description)| {
        json!({ "metadata": { "name": name }, "value": value, "description": description })
    });
    let now = objects::now();
    let definitions =
        custom_resources.iter().map(|definition| custom::established(definition, &now));
    let all = namespaces
        .map(|it| ("", "namespaces", it))
        .into_iter()
        .chain(classes.map(|it| ("scheduling.k8s.io", "priorityclasses", it)))
        .chain(definitions.map(|it| ("apiextensions.k8s.io", "customresourcedefinitions", it)));
    for (group, plural, object) in all {
        let Some(ty) = catalog.find(group, "v1", plural) else { continue };
        let target = Target { ty, namespace: None, name: None, subresource: String::new() };
        let created = objects::prepare_new(catalog, store, &target, object)
            .and_then(|(key, object)| store.create(ty, &key, object, Action::new("create", false)));
        if let Err(refusal) = created {
            tracing::warn!(plural, status = %refusal.status(), "left out of the fresh cluster");
        }
    }
}
