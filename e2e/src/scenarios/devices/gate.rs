//! Does something to the scheduler's writes for Pods with devices, and to its watch of claims.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, pending};
use http::{Method, StatusCode};
use hyper::body::Bytes;
use kube::Client;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::control_plane::config_from;
use crate::error::{Doing as _, Error, Result};
use crate::observe::PATIENCE;
use crate::proxy::{Answer, Call, CarryOut, Fate, Gate, Proxy, Server, Shaper};
use crate::scheduler_process::SchedulerProcess;

const CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";

/// The writes by which a Pod with devices is bound, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Finalizer,
    /// The devices of the claim, and whom it is reserved for.
    Status,
    Binding,
}

impl Write {
    pub const ALL: [Self; 3] = [Self::Finalizer, Self::Status, Self::Binding];

    fn is(self, call: &Call) -> bool {
        let path = call.path();
        let is_change = [Method::PUT, Method::PATCH].contains(&call.method);
        let is_of_claim = is_change && path.contains("/resourceclaims/");
        match self {
            Self::Finalizer => is_of_claim && !path.ends_with("/status"),
            Self::Status => is_of_claim && path.ends_with("/status"),
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
    /// It is carried out, and the connection breaks before the answer.
    LoseReply,
    /// It is answered with this code, and never arrives.
    Answer(u16),
    /// This comes first.
    After(BoxFuture<'static, ()>),
    /// This comes between the write and its answer.
    AnswerAfter(BoxFuture<'static, ()>),
    /// It arrives when it is let.
    Late,
}

struct Plan {
    write: Write,
    then: Then,
}

/// Does each once, those of one kind of write in their order; everything else passes.
struct WriteGate {
    plans: Mutex<Vec<Plan>>,
    reached: watch::Sender<usize>,
    lets_late_arrive: watch::Sender<bool>,
    /// What became of the late call.
    late: watch::Sender<Option<StatusCode>>,
    /// The watch of claims ends at its next event, and what is asked for next is too old.
    claims: Mutex<ClaimWatch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimWatch {
    Passes,
    IsToBeCut,
    IsCut,
    IsSilent,
}

impl WriteGate {
    fn new(plans: Vec<(Write, Then)>) -> Self {
        let plans = plans.into_iter().map(|(write, then)| Plan { write, then }).collect();
        Self {
            plans: Mutex::new(plans),
            reached: watch::Sender::new(0),
            lets_late_arrive: watch::Sender::new(false),
            late: watch::Sender::new(None),
            claims: Mutex::new(ClaimWatch::Passes),
        }
    }

    /// What to do with this call, if it is the one.
    fn take(&self, call: &Call) -> Option<Then> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let next = plans.iter().position(|plan| plan.write.is(call))?;
        Some(plans.remove(next).then)
    }

    fn has_reached(&self) {
        self.reached.send_modify(|reached| *reached += 1);
    }

    /// Moves from one to the other, if it is that.
    fn step_claims(&self, from: ClaimWatch, to: ClaimWatch) -> bool {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = *claims == from;
        if is_it {
            *claims = to;
        }
        is_it
    }
}

impl Gate for WriteGate {
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut {
        let Some(then) = self.take(&call) else { return carry_out };
        if matches!(then, Then::Late) {
            // In a task of its own: it arrives, whatever becomes of the sender.
            let arriving = tokio::spawn(async move {
                self.has_reached();
                let _ = self.lets_late_arrive.subscribe().wait_for(|lets| *lets).await;
                let answer = carry_out.await;
                let status = answer.as_ref().map_or(StatusCode::BAD_GATEWAY, |it| it.status);
                self.late.send_replace(Some(status));
                answer
            });
            return arriving.map(|joined| joined.map_err(|_| Error::ReplyLost)?).boxed();
        }
        async move {
            match then {
                Then::HoldCall => {
                    self.has_reached();
                    pending().await
                }
                Then::HoldReply => {
                    carry_out.await?;
                    self.has_reached();
                    pending().await
                }
                Then::LoseReply => {
                    carry_out.await?;
                    self.has_reached();
                    Err(Error::ReplyLost)
                }
                Then::Answer(code) => {
                    self.has_reached();
                    Ok(Answer::status(code))
                }
                Then::After(first) => {
                    first.await;
                    self.has_reached();
                    carry_out.await
                }
                Then::AnswerAfter(next) => {
                    let answer = carry_out.await;
                    next.await;
                    self.has_reached();
                    answer
                }
                Then::Late => carry_out.await,
            }
        }
        .boxed()
    }

    fn refuse_watch(&self, call: &Call) -> Option<(StatusCode, Bytes)> {
        let is_it =
            call.path() == CLAIMS && self.step_claims(ClaimWatch::IsCut, ClaimWatch::Passes);
        let too_old = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
            "message": "too old resource version", "code": 410,
        });
        is_it.then(|| (StatusCode::GONE, too_old.to_string().into()))
    }

    fn shape_watch(self: Arc<Self>, call: &Call) -> Option<Shaper> {
        (call.path() == CLAIMS).then(|| -> Shaper {
            Box::new(move |event, _| {
                if self.step_claims(ClaimWatch::IsSilent, ClaimWatch::IsSilent) {
                    return Fate::Silence;
                }
                if self.step_claims(ClaimWatch::IsToBeCut, ClaimWatch::IsCut) {
                    return Fate::Cut;
                }
                Fate::Events(vec![Bytes::copy_from_slice(event)])
            })
        })
    }
}

/// A scheduler behind a proxy that does something at its writes.
pub(super) struct GatedScheduler {
    scheduler: SchedulerProcess,
    proxy: Proxy,
    gate: Arc<WriteGate>,
    _folder: TempDir,
}

impl GatedScheduler {
    pub async fn start(cluster: &Cluster, plans: Vec<(Write, Then)>) -> Result<Self> {
        Self::start_with(cluster, plans, &[]).await
    }

    /// The same, with more flags.
    pub async fn start_with(
        cluster: &Cluster,
        plans: Vec<(Write, Then)>,
        flags: &[&str],
    ) -> Result<Self> {
        let gate = Arc::new(WriteGate::new(plans));
        let mut access = config_from(cluster.scheduler_kubeconfig()).await?;
        access.default_retry = false;
        let upstream =
            Client::try_from(access).doing("making a client with the scheduler's rights")?;
        let as_gate: Arc<dyn Gate> = gate.clone();
        let proxy = Proxy::start(Server::ApiServer, upstream, as_gate).await?;
        let folder = tempfile::tempdir().doing("making a folder for a kubeconfig")?;
        let kubeconfig = proxy.write_kubeconfig(folder.path())?;
        let binary = cluster.scheduler_binary();
        let scheduler = SchedulerProcess::start_binary(binary, &kubeconfig, flags).await?;
        Ok(Self { scheduler, proxy, gate, _folder: folder })
    }

    /// Waits until so many of the writes have come.
    pub async fn until_reached(&self, count: usize, patience: Duration) -> Result<()> {
        let mut reached = self.gate.reached.subscribe();
        let waiting = reached.wait_for(|reached| *reached >= count);
        timeout(patience, waiting).await.map(drop).map_err(|_| Error::TimedOut {
            awaited: format!("{count} of the scheduler's writes"),
            seconds: patience.as_secs(),
            seen: format!("{} came", *self.gate.reached.borrow()),
        })
    }

    /// How many of the writes have come.
    pub fn reached(&self) -> usize {
        *self.gate.reached.borrow()
    }

    /// Kills it when the write has come, and lets nothing of it through any more.
    pub async fn kill_when_reached(self) -> Result<()> {
        self.until_reached(1, PATIENCE).await?;
        self.kill().await
    }

    /// The next event of its watch of claims is lost with everything after it, until it lists them anew.
    pub fn cut_claims(&self) {
        self.gate.step_claims(ClaimWatch::Passes, ClaimWatch::IsToBeCut);
    }

    /// From now on its watch of claims brings nothing, though its connection stays.
    pub fn silence_claims(&self) {
        self.gate.step_claims(ClaimWatch::Passes, ClaimWatch::IsSilent);
    }

    /// Whether it has been made to list the claims anew.
    pub fn has_relisted(&self) -> bool {
        let claims = self.gate.claims.lock().unwrap_or_else(PoisonError::into_inner);
        *claims == ClaimWatch::Passes
    }

    pub async fn kill(self) -> Result<()> {
        self.scheduler.kill9_quietly().await?;
        self.proxy.bury().await
    }

    /// Lets the late call arrive, and returns how it was answered.
    pub async fn let_late_arrive(&self) -> Result<StatusCode> {
        self.gate.lets_late_arrive.send_replace(true);
        let mut late = self.gate.late.subscribe();
        let arrived = timeout(PATIENCE, late.wait_for(Option::is_some)).await;
        let code = arrived.ok().and_then(Result::ok).and_then(|code| *code);
        code.ok_or_else(|| Error::malformed("letting a late call arrive", "it did not"))
    }

    pub fn process(&mut self) -> &mut SchedulerProcess {
        &mut self.scheduler
    }
}

impl fmt::Debug for GatedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedScheduler").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}
