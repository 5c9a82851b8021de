//! A control plane with its policies, daemons, and the replicas.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::LEASE_DURATION;
use super::line::Line;
use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, config_from};
use crate::daemons_process::DaemonsProcess;
use crate::error::{Doing as _, Error, Result};
use crate::metrics;
use crate::proxy::{Proxy, Server};
use crate::scheduler_process::{SchedulerProcess, scheduler_binary};
use crate::stage::backend_arguments;
use crate::supervised::Signal;
use crate::{SCHEDULER_NAME, SYSTEM_NAMESPACE};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A machine that is busy with other things must not fail a test that is not about time.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub struct ReplicaSite {
    pub replicas: Vec<Replica>,
    pub cluster: Cluster,
    pub daemons: DaemonsProcess,
    binary: PathBuf,
    config: PathBuf,
    // Dropped last: the others would miss them.
    _folder: TempDir,
    plane: ControlPlane,
}

#[derive(Debug)]
pub struct Replica {
    pub process: SchedulerProcess,
    pub line: Arc<Line>,
    _proxy: Proxy,
    _folder: TempDir,
}

impl ReplicaSite {
    pub async fn start(replicas: usize) -> Result<Self> {
        Self::start_with(scheduler_binary().await?, replicas).await
    }

    /// With replicas that are run by this program.
    pub async fn start_with(binary: PathBuf, replicas: usize) -> Result<Self> {
        let plane = ControlPlane::start().await?;
        plane.install_crds().await?;
        plane.install_admission().await?;
        let cluster = plane.cluster().await?;
        let daemons = DaemonsProcess::start(&binary, &[]).await?;
        let folder = tempfile::tempdir().doing("making a folder for a configuration")?;
        let config = folder.path().join("config.yaml");
        let trusted_keys = fs::read_to_string(daemons.trusted_keys()).doing("reading the keys")?;
        let election = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": { "leaseDuration": format!("{}s", LEASE_DURATION.as_secs()) },
        });
        fs::write(&config, format!("{trusted_keys}\n---\n{election}\n")).doing("writing a file")?;
        let mut site =
            Self { replicas: vec![], cluster, daemons, binary, config, _folder: folder, plane };
        for _ in 0..replicas {
            let replica = site.start_replica().await?;
            site.replicas.push(replica);
        }
        Ok(site)
    }

    pub fn admin(&self) -> &Client {
        self.cluster.admin()
    }

    /// A further replica, ready: it has listed everything, whichever replica leads.
    pub async fn start_replica(&self) -> Result<Replica> {
        let mut access = config_from(self.plane.scheduler_kubeconfig()).await?;
        access.default_retry = false;
        let upstream =
            Client::try_from(access).doing("making a client with the scheduler's rights")?;
        let line = Line::open();
        let proxy = Proxy::start(Server::ApiServer, upstream, line.clone()).await?;
        let folder = tempfile::tempdir().doing("making a folder for a kubeconfig")?;
        let kubeconfig = proxy.write_kubeconfig(folder.path())?;
        let mut flags = backend_arguments(&self.daemons.url(), &self.config);
        flags.push("--leader-elect=true".to_owned());
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let process = SchedulerProcess::start_binary(&self.binary, &kubeconfig, &flags).await?;
        Ok(Replica { process, line, _proxy: proxy, _folder: folder })
    }

    /// The number of the replica that says it leads, once one does.
    pub async fn leader(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for (number, replica) in self.replicas.iter().enumerate() {
                if replica.leads().await? {
                    return Ok(number);
                }
            }
            if Instant::now() > deadline {
                return Err(timed_out(
                    "a replica to lead",
                    &format!("{:?}", self.lease().await?.spec),
                ));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// As it stands on the Bindings of the current leader.
    pub async fn term(&self) -> Result<String> {
        let spec = self.lease().await?.spec.unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        Ok(format!("{holder}/{}", spec.lease_transitions.unwrap_or(0)))
    }

    async fn lease(&self) -> Result<Lease> {
        let leases: Api<Lease> = Api::namespaced(self.admin().clone(), SYSTEM_NAMESPACE);
        leases.get(SCHEDULER_NAME).await.doing("reading the Lease of the scheduler")
    }
}

impl Replica {
    pub async fn leads(&self) -> Result<bool> {
        let scraped = self.process.metrics().await?;
        Ok(metrics::sum(&scraped, "leader_election_master_status", &[]) > 0.5)
    }

    pub async fn until_it_leads(&self, leads: bool, patience: Duration) -> Result<Duration> {
        let began = Instant::now();
        while self.leads().await? != leads {
            if began.elapsed() > patience {
                let awaited = format!("a replica to say that it leads: {leads}");
                return Err(timed_out(&awaited, &self.process.log()));
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(began.elapsed())
    }

    /// It does nothing any more, and does not know it.
    pub fn stop(&mut self) -> Result<()> {
        self.process.signal(Signal::Stop)
    }

    pub fn go_on(&mut self) -> Result<()> {
        self.process.signal(Signal::Continue)
    }
}

fn timed_out(awaited: &str, seen: &str) -> Error {
    Error::TimedOut {
        awaited: awaited.to_owned(),
        seconds: PATIENCE.as_secs(),
        seen: seen.to_owned(),
    }
}
