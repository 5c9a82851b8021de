//! The schedulers and clients that are compared, and how each is run.

use std::env;
use std::path::Path;

use e2e::control_plane::{ControlPlane, KubeScheduler};
use e2e::error::Doing as _;
use e2e::supervised::Supervised;
use e2e::{Error, Result, SYSTEM_NAMESPACE, SchedulerProcess};
use kube::Client;
use serde::Serialize;
use serde_json::json;

use super::{api, bind_only};

/// The scheduler's Lease, by which the API server fences Bindings.
const LEASE: &str = "corridor-scheduler";
/// The limit client under its fence.
const LIMIT_HOLDER: &str = "bind-only";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The limit of the API server.
    BindOnly,
    KubeScheduler,
    CorridorScheduler,
}

impl Contestant {
    pub fn name(self) -> &'static str {
        match self {
            Self::BindOnly => "bind-only",
            Self::KubeScheduler => "kube-scheduler",
            Self::CorridorScheduler => "corridor-scheduler",
        }
    }

    /// What its Pods have as `schedulerName`.
    pub fn scheduler_name(self) -> &'static str {
        match self {
            Self::BindOnly => bind_only::SCHEDULER_NAME,
            Self::KubeScheduler => "default-scheduler",
            Self::CorridorScheduler => e2e::SCHEDULER_NAME,
        }
    }

    pub fn writes_events(self) -> bool {
        self != Self::BindOnly
    }

    /// Starts it beside a backlog that is there already.
    pub async fn start(
        self,
        plane: &ControlPlane,
        binary: &Path,
        backends: &str,
    ) -> Result<Running> {
        Ok(match self {
            Self::BindOnly => Running::BindOnly(start_bind_only(plane).await?),
            Self::KubeScheduler => Running::Kube(plane.start_kube_scheduler_at_its_best()?),
            Self::CorridorScheduler => {
                // As in production: one of several replicas, that has won the election.
                let flags = ["--leader-elect=true", "--backends", backends];
                let kubeconfig = plane.scheduler_kubeconfig();
                let process = SchedulerProcess::start_binary(binary, kubeconfig, &flags).await?;
                Running::Ours(Box::new(process.quiet()))
            }
        })
    }
}

/// A contestant that runs. It ends when this is dropped.
#[derive(Debug)]
pub enum Running {
    BindOnly(Supervised),
    Kube(KubeScheduler),
    Ours(Box<SchedulerProcess>),
}

impl Running {
    pub fn process_id(&self) -> Result<u32> {
        let number = match self {
            Self::BindOnly(process) => process.process_id(),
            Self::Kube(process) => process.process_id(),
            Self::Ours(process) => process.process_id(),
        };
        number.ok_or_else(|| Error::malformed("looking at a contestant", "it was not started"))
    }

    /// An error when it is no longer there.
    pub fn ensure_alive(&self) -> Result<()> {
        match self {
            Self::BindOnly(process) if process.has_ended() => Err(process.stopped_unexpectedly()),
            Self::Kube(process) if process.has_ended() => Err(process.stopped_unexpectedly()),
            Self::Ours(process) if process.has_ended() => Err(Error::ServerStopped {
                program: e2e::SCHEDULER_NAME.into(),
                log_tail: process.log(),
            }),
            _ => Ok(()),
        }
    }

    /// What it says of itself, in the format of Prometheus; nothing from those that are not asked.
    pub async fn metrics(&self) -> Result<String> {
        match self {
            Self::Ours(process) => process.metrics().await,
            Self::BindOnly(_) | Self::Kube(_) => Ok(String::new()),
        }
    }

    /// Ends it, and leaves no Lease to wait for.
    pub async fn stop(self, client: &Client) -> Result<()> {
        match self {
            Self::Ours(process) => process.terminate().await.map(drop)?,
            Self::BindOnly(process) => drop(process),
            Self::Kube(process) => drop(process),
        }
        api::delete(client, &lease("")).await
    }
}

async fn start_bind_only(plane: &ControlPlane) -> Result<Supervised> {
    let admin = plane.admin();
    api::delete(&admin, &lease("")).await?;
    api::create(&admin, &lease(LIMIT_HOLDER)).await?;
    let program =
        env::current_exe().doing("looking for the limit client, which is this program")?;
    let kubeconfig = plane.scheduler_kubeconfig();
    let mut process = Supervised::prepare("bind-only", &program, |_| {
        let leader = format!("{LIMIT_HOLDER}/0");
        vec![
            "bind-only".into(),
            "--kubeconfig".into(),
            kubeconfig.into(),
            "--leader".into(),
            leader.into(),
        ]
    })?;
    process.start()?;
    Ok(process)
}

fn lease(holder: &str) -> serde_json::Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": SYSTEM_NAMESPACE, "name": LEASE},
        "spec": {"holderIdentity": holder, "leaseTransitions": 0},
    })
}
