//! A control plane and daemons, with a proxy before each, for a scheduler whose calls are looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::{Client, Config};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, config_from};
use crate::daemons_process::DaemonsProcess;
use crate::error::{Doing as _, Result};
use crate::proxy::{Gate, Proxy, Server};
use crate::scheduler_process::{SchedulerProcess, plain_client, scheduler_binary};
use crate::site::with_settings;

/// Everything but the scheduler.
#[derive(Debug)]
pub struct Stage {
    pub cluster: Cluster,
    pub daemons: DaemonsProcess,
    api_server: Proxy,
    backends: Proxy,
    binary: PathBuf,
    kubeconfig: PathBuf,
    // Dropped last: the others would miss them.
    folder: tempfile::TempDir,
    _plane: ControlPlane,
}

impl Stage {
    /// One gate for both servers.
    pub async fn start(gate: Arc<dyn Gate>) -> Result<Self> {
        let plane = ControlPlane::start().await?;
        plane.install_crds().await?;
        let cluster = plane.cluster().await?;
        let binary = scheduler_binary().await?;
        let daemons = DaemonsProcess::start(&binary, &[]).await?;
        let as_scheduler = scheduler_client(plane.scheduler_kubeconfig()).await?;
        let api_server = Proxy::start(Server::ApiServer, as_scheduler, Arc::clone(&gate)).await?;
        let to_daemons = plain_client(&daemons.url())?;
        let backends = Proxy::start(Server::Daemons, to_daemons, gate).await?;
        let folder = tempfile::tempdir().doing("making a folder for a kubeconfig")?;
        Ok(Self {
            kubeconfig: api_server.write_kubeconfig(folder.path())?,
            cluster,
            daemons,
            api_server,
            backends,
            binary,
            folder,
            _plane: plane,
        })
    }

    /// Starts a scheduler that calls through the proxies and waits until it is ready.
    pub async fn start_scheduler(&self) -> Result<SchedulerProcess> {
        self.start_scheduler_with(&Value::Null).await
    }

    /// The same, with these settings of a `CorridorConfiguration`.
    pub async fn start_scheduler_with(&self, settings: &Value) -> Result<SchedulerProcess> {
        let config = self.folder.path().join("corridor.yaml");
        let settings = with_settings(&self.daemons.trusted_keys(), settings)?;
        let doing = || format!("writing {}", config.display());
        fs::write(&config, settings.to_string()).doing(doing())?;
        let arguments = backend_arguments(self.backends.url(), &config);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        SchedulerProcess::start_binary(&self.binary, &self.kubeconfig, &arguments).await
    }

    /// To be called when the scheduler is dead. Returns when nothing of it is under way.
    pub async fn bury(&self) -> Result<()> {
        self.api_server.bury().await?;
        self.backends.bury().await
    }
}

/// What a scheduler is told about daemons at one URL.
pub fn backend_arguments(url: &str, config: &Path) -> Vec<String> {
    let mut arguments: Vec<String> = ["--backends", "http", "--config"].map(str::to_owned).into();
    arguments.push(config.to_string_lossy().into_owned());
    for flag in ["--corrd-url", "--memqosd-url", "--attestd-url"] {
        arguments.extend([flag.to_owned(), url.to_owned()]);
    }
    arguments
}

/// A client with the scheduler's own rights that passes everything on as it is.
async fn scheduler_client(kubeconfig: &Path) -> Result<Client> {
    let mut config: Config = config_from(kubeconfig).await?;
    config.default_retry = false;
    Client::try_from(config).doing("making a client with the scheduler's rights")
}
