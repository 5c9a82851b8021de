//! A real etcd and a real kube-apiserver, with RBAC on, that end with the test process.

mod access;
mod admission;
mod audit;
mod controller_manager;
mod crds;
mod kube_scheduler;
mod restart;
pub mod servers;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Config};
use tokio::process::Command;
use tokio::task::spawn_blocking;

pub use access::config_from;
pub use admission::DryRun;
pub use audit::{AuditLog, AuditWrite, Binding};
pub use controller_manager::ControllerManager;
pub use kube_scheduler::KubeScheduler;
use restart::Restarts;

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result};
use crate::observe::{PATIENCE, until};
use crate::scheduler_process::scheduler_binary;
use crate::supervised::Supervised;

/// The repository's `config/` folder.
pub const CONFIG_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config");

/// What differs from one control plane to another.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlaneOptions {
    /// Pods of the system's priority classes are refused where no quota names the class, as on GKE.
    pub guards_classes: bool,
}

/// A control plane of its own: share one by a static `OnceCell`, or start several side by side.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: the API server first, so that it does not miss its etcd.
    api_server: Supervised,
    etcd: Supervised,
    binaries: Binaries,
    admin: Config,
    admin_kubeconfig: PathBuf,
    scheduler_kubeconfig: PathBuf,
    audit: AuditLog,
    restarts: Restarts,
}

impl ControlPlane {
    /// Starts it, applies `config/rbac/` and makes a token for the scheduler's ServiceAccount.
    /// Takes a few seconds, and minutes when the programs must be built first.
    pub async fn start() -> Result<Self> {
        Self::start_with(PlaneOptions::default()).await
    }

    pub async fn start_with(options: PlaneOptions) -> Result<Self> {
        install_crypto_provider();
        let binaries = spawn_blocking(Binaries::locate)
            .await
            .map_err(|problem| Error::malformed("looking for the programs", problem))??;
        let etcd = servers::start_etcd(&binaries).await?;
        let api = servers::start_api_server(&binaries, &etcd.url, options).await?;
        let folder = api.server.folder();
        let mut this = Self {
            admin_kubeconfig: api.admin_kubeconfig,
            scheduler_kubeconfig: folder.join("scheduler.kubeconfig"),
            audit: AuditLog::at(api.audit_log),
            admin: api.admin,
            api_server: api.server,
            etcd: etcd.server,
            restarts: Restarts::new(api.port, etcd.url),
            binaries,
        };
        this.give_scheduler_access().await?;
        // The server creates it by itself, some time after it says that it is ready.
        let namespaces: Api<Namespace> = Api::all(this.admin());
        until(&namespaces, "the namespace default", PATIENCE, |seen| seen.contains_key("default"))
            .await?;
        Ok(this)
    }

    /// A client with every right, made for the runtime it is called in: clients do not survive the
    /// runtime they were made in, a shared control plane does.
    pub fn admin(&self) -> Client {
        Client::try_from(self.admin.clone()).expect("the same configuration worked at the start")
    }

    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// With a token of the ServiceAccount `corridor-operator`, and so with its rights only.
    pub fn scheduler_kubeconfig(&self) -> &Path {
        &self.scheduler_kubeconfig
    }

    /// This control plane as scenarios see it. Builds the scheduler if need be.
    pub async fn cluster(&self) -> Result<Cluster> {
        let scheduler = scheduler_binary().await?;
        let cluster = Cluster::new(self.admin(), self.scheduler_kubeconfig.clone(), scheduler);
        Ok(cluster.with_audit(self.audit.clone()))
    }

    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Every Binding that the API server answered with 201, in order.
    pub fn successful_bindings(&self) -> Result<Vec<Binding>> {
        self.audit.successful_bindings()
    }

    /// Runs the kubectl of this control plane as its administrator and returns what it prints.
    pub async fn kubectl<S: AsRef<OsStr> + Sync>(&self, arguments: &[S]) -> Result<String> {
        let shown: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let command = format!("kubectl {}", shown.join(" "));
        let output = Command::new(self.binaries.path("kubectl"))
            .args(arguments)
            .env("KUBECONFIG", &self.admin_kubeconfig)
            // Not the preferences of the user that runs the tests.
            .env("HOME", self.api_server.folder())
            .env("KUBERC", "off")
            // And no caches: a kubectl that outlives a killed test process for a moment would make
            // the removed folder anew for them.
            .env("KUBECACHEDIR", "/dev/null")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .doing(format!("starting `{command}`"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Command {
            command,
            status: output.status.to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// The folders of its servers: all it has on disk. They are gone when it is.
    pub fn folders(&self) -> [&Path; 2] {
        [self.api_server.folder(), self.etcd.folder()]
    }

    /// The process numbers of its servers.
    pub fn process_ids(&self) -> Vec<u32> {
        [&self.api_server, &self.etcd].into_iter().filter_map(Supervised::process_id).collect()
    }
}

/// Without a choice of its own, the first client would panic as soon as any crate in the build
/// enables a second provider.
pub fn install_crypto_provider() {
    // An error only says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
