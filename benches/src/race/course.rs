//! The cluster of a workload on a real API server, installed as in production.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use e2e::binaries::say;
use e2e::control_plane::{CONFIG_DIR, ControlPlane};
use e2e::process_cost::cpu_seconds;
use e2e::scheduler_process::scheduler_binary;
use e2e::{Error, Result};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::api;
use super::binders::Binders;
use super::contestant::{Contestant, Running};
use crate::workload::{NAMESPACE, Workload};

/// What a contestant leaves behind.
const LEFTOVERS: [&str; 4] = ["measured-", "waiting-", "steady-", "churn-"];
/// Beats after which what came goes again.
const CHURN_STAYS: usize = 2;
const GONE_TIME_MAX: Duration = Duration::from_mins(2);
const GONE_POLL_EVERY: Duration = Duration::from_millis(200);

/// A control plane with the workload's Nodes and Pods, ready for one contestant after the other.
pub struct Course {
    pub workload: Workload,
    pub namespace: String,
    pub admin: Client,
    /// Before the servers that it talks to.
    binders: Option<Binders>,
    plane: ControlPlane,
    binary: PathBuf,
}

impl Course {
    pub async fn lay_out(workload: Workload) -> Result<Self> {
        let binary = scheduler_binary().await?;
        let plane = ControlPlane::start().await?;
        plane.install_crds().await?;
        plane.install_admission().await?;
        let flow_control = format!("{CONFIG_DIR}/flowcontrol");
        plane.kubectl(&["apply", "--server-side", "--filename", &flow_control]).await?;
        let admin = plane.admin();
        let namespace = json!({"kind": "Namespace", "metadata": {"name": NAMESPACE}});
        api::ensure(&admin, &namespace).await?;
        let (binders, objects) = Binders::lay_out(&plane, &workload).await?;
        say(&format!("creating {} objects and {} Nodes", objects.len(), workload.size().nodes));
        api::create_all(&admin, objects).await?;
        api::create_all(&admin, workload.all_nodes()).await?;
        Ok(Self { workload, namespace: NAMESPACE.to_owned(), admin, binders, plane, binary })
    }

    /// Everything as the next contestant is to find it: what others left is gone, what they sent away is
    /// back, and the backlog is there.
    pub async fn prepare(&self, contestant: Contestant) -> Result<()> {
        self.clear().await?;
        self.restore_existing().await?;
        let name = contestant.scheduler_name();
        // First what cannot be placed: it stands in the way of the rest.
        api::create_all(&self.admin, self.workload.all_waiting(name)).await?;
        api::create_all(&self.admin, self.workload.all_measured(name)).await
    }

    /// Returns when nothing of a contestant is left, and claims are as they were before it.
    pub async fn clear(&self) -> Result<()> {
        let deadline = Instant::now() + GONE_TIME_MAX;
        loop {
            let left = api::delete_pods(&self.admin, &self.namespace, &LEFTOVERS).await?;
            if left == 0 {
                break;
            }
            if Instant::now() > deadline {
                return Err(Error::TimedOut {
                    awaited: "the Pods of the last contestant to be gone".into(),
                    seconds: GONE_TIME_MAX.as_secs(),
                    seen: format!("there were {left}"),
                });
            }
            sleep(GONE_POLL_EVERY).await;
        }
        match &self.binders {
            Some(binders) => binders.renew(&self.admin, &self.namespace).await,
            None => Ok(()),
        }
    }

    async fn restore_existing(&self) -> Result<()> {
        let there: HashSet<String> =
            api::pod_names(&self.admin, &self.namespace).await?.into_iter().collect();
        let is_missing =
            |pod: &Value| !there.contains(pod["metadata"]["name"].as_str().unwrap_or_default());
        let missing: Vec<Value> =
            self.workload.all_existing().into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            say(&format!("creating {} Pods on Nodes", missing.len()));
        }
        api::create_all(&self.admin, missing).await
    }

    pub async fn start(&self, contestant: Contestant) -> Result<Running> {
        // Only Pods that refer to something need daemons, and none is asked of kube-scheduler.
        let backends = if self.workload.ours_only { "simulated" } else { "none" };
        contestant.start(&self.plane, &self.binary, backends).await
    }

    /// Of the API server and of etcd.
    pub fn server_cpu_seconds(&self) -> Result<[f64; 2]> {
        match self.plane.process_ids()[..] {
            [api_server, etcd] => Ok([cpu_seconds(api_server)?, cpu_seconds(etcd)?]),
            _ => Err(Error::malformed("looking at the control plane", "it has ended")),
        }
    }

    /// Begins to disturb, if the workload does, until the result is dropped.
    pub fn begin_churn(&self, scheduler: &str) -> Option<ChurnGuard> {
        let every = Duration::from_millis(self.workload.churn.as_ref()?.every_ms);
        let (workload, client) = (self.workload.clone(), self.admin.clone());
        let scheduler = scheduler.to_owned();
        let task = tokio::spawn(async move {
            let mut beat = interval(every);
            beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for number in 0.. {
                beat.tick().await;
                if let Err(problem) = churn_once(&client, &workload, number, &scheduler).await {
                    say(&format!("the churn failed: {problem}"));
                    return;
                }
            }
        });
        Some(ChurnGuard { task })
    }

    /// Why a contestant did not bind all: what one of its waiting Pods says.
    pub async fn too_few(&self, contestant: Contestant, bound: usize) -> Error {
        let pods = self.workload.size().pods;
        let said = self
            .plane
            .kubectl(&[
                "get",
                "pods",
                "--namespace",
                &self.namespace,
                "--field-selector",
                "spec.nodeName=",
                "--chunk-size=1",
                "--output",
                "jsonpath={.items[0].metadata.name}: {.items[0].status.conditions}",
            ])
            .await;
        let said = said.unwrap_or_else(|problem| problem.to_string());
        let who = contestant.name();
        Error::Violated(format!("{who} bound {bound} of {pods} Pods and then no more; {said}"))
    }
}

async fn churn_once(
    client: &Client,
    workload: &Workload,
    number: usize,
    scheduler: &str,
) -> Result<()> {
    for object in workload.churned(number, scheduler) {
        api::ensure(client, &object).await?;
    }
    let Some(old) = number.checked_sub(CHURN_STAYS) else { return Ok(()) };
    for object in workload.churned(old, scheduler) {
        api::delete(client, &object).await?;
    }
    Ok(())
}

/// Ends the churn. The last beats' objects are left for `clear`, where they are in the way of no other.
#[derive(Debug)]
pub struct ChurnGuard {
    task: JoinHandle<()>,
}

impl Drop for ChurnGuard {
    fn drop(&mut self) {
        self.task.abort();
    }
}
