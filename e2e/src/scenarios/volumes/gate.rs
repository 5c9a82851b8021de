//! Stops the scheduler at one of its writes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, pending};
use http::Method;
use kube::Client;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::control_plane::config_from;
use crate::error::{Doing as _, Error, Result};
use crate::observe::PATIENCE;
use crate::proxy::{Call, CarryOut, Gate, Proxy, Server};
use crate::scheduler_process::SchedulerProcess;

/// The writes by which a Pod with volumes is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// The claim of a volume.
    Volume,
    /// The node of a claim.
    Claim,
    Binding,
}

impl Write {
    fn is(self, call: &Call) -> bool {
        let path = call.path();
        let is_change = [Method::PUT, Method::PATCH].contains(&call.method);
        match self {
            Self::Volume => is_change && path.starts_with("/api/v1/persistentvolumes/"),
            Self::Claim => is_change && path.contains("/persistentvolumeclaims/"),
            Self::Binding => call.method == Method::POST && path.ends_with("/binding"),
        }
    }
}

/// What is done at the write.
pub(super) enum Then {
    /// It never arrives.
    HoldCall,
    /// It is carried out, and the scheduler never learns it.
    HoldReply,
    /// This comes first.
    After(BoxFuture<'static, ()>),
}

struct Plan {
    write: Write,
    /// So many of the kind pass before.
    others: usize,
    then: Then,
}

/// Does it once; everything else passes.
struct WriteGate {
    plan: Mutex<Option<Plan>>,
    reached: watch::Sender<bool>,
}

impl WriteGate {
    /// What to do with this call, if it is the one.
    fn take(&self, call: &Call) -> Option<Then> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let planned = plan.as_mut().filter(|plan| plan.write.is(call))?;
        if planned.others > 0 {
            planned.others -= 1;
            return None;
        }
        plan.take().map(|plan| plan.then)
    }
}

impl Gate for WriteGate {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        let Some(then) = self.take(&call) else { return carry_out };
        async move {
            match then {
                Then::HoldCall => {
                    self.reached.send_replace(true);
                    pending().await
                }
                Then::HoldReply => {
                    carry_out.await?;
                    self.reached.send_replace(true);
                    pending().await
                }
                Then::After(first) => {
                    first.await;
                    self.reached.send_replace(true);
                    carry_out.await
                }
            }
        }
        .boxed()
    }
}

/// A scheduler behind a proxy that does something at one of its writes.
pub(super) struct GatedScheduler {
    scheduler: SchedulerProcess,
    proxy: Proxy,
    gate: Arc<WriteGate>,
    _folder: TempDir,
}

impl GatedScheduler {
    /// At the write after `others` of the same kind.
    pub async fn start(cluster: &Cluster, write: Write, others: usize, then: Then) -> Result<Self> {
        let plan = Mutex::new(Some(Plan { write, others, then }));
        let gate = Arc::new(WriteGate { plan, reached: watch::Sender::new(false) });
        let mut access = config_from(cluster.scheduler_kubeconfig()).await?;
        access.default_retry = false;
        let upstream =
            Client::try_from(access).doing("making a client with the scheduler's rights")?;
        let as_gate: Arc<dyn Gate> = gate.clone();
        let proxy = Proxy::start(Server::ApiServer, upstream, as_gate).await?;
        let folder = tempfile::tempdir().doing("making a folder for a kubeconfig")?;
        let kubeconfig = proxy.write_kubeconfig(folder.path())?;
        let binary = cluster.scheduler_binary();
        let scheduler = SchedulerProcess::start_binary(binary, &kubeconfig, &[]).await?;
        Ok(Self { scheduler, proxy, gate, _folder: folder })
    }

    /// Waits until the write has come.
    pub async fn until_reached(&self, patience: Duration) -> Result<()> {
        let mut reached = self.gate.reached.subscribe();
        let waiting = reached.wait_for(|reached| *reached);
        timeout(patience, waiting).await.map(drop).map_err(|_| Error::TimedOut {
            awaited: "the write at which the scheduler is to be stopped".into(),
            seconds: patience.as_secs(),
            seen: "it did not come".into(),
        })
    }

    /// Kills it when the write has come, and lets nothing of it through any more.
    pub async fn kill_when_reached(self) -> Result<()> {
        self.until_reached(PATIENCE).await?;
        self.scheduler.kill9_quietly().await?;
        self.proxy.bury().await
    }
}

impl fmt::Debug for GatedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedScheduler").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}
