//! Carries out the steps of the candidate, and publishes its state.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::{sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::candidate::{Candidate, Reply, Step};
use super::identity;
use super::settings::ElectionSettings;
use super::tenure::{LeadershipState, Tenure};

/// How a replica leaves the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Every call of this process has ended.
    InOrder,
    /// Some may be under way, and what is under way may not be given up: a thread that is stuck does nothing.
    Broken,
}

/// Takes part in the election for as long as it runs.
#[derive(Debug)]
pub struct Election {
    candidate: Candidate,
    leases: Leases,
    tenure: Tenure,
    last: LeadershipState,
    write_timeout: Duration,
}

impl Election {
    /// The client must not be the fenced one: a replica that does not lead yet has to write the Lease.
    pub fn new(client: Client, settings: ElectionSettings) -> Self {
        let tenure = Tenure::following();
        let leases = Leases {
            api: Api::namespaced(client, &settings.namespace),
            name: settings.name.clone(),
            call_timeout: settings.call_timeout(),
            failing: false,
        };
        let write_timeout = settings.write_timeout();
        let candidate = Candidate::new(settings, identity::fresh(), tenure.clock().now());
        let last = candidate.leadership();
        Self { candidate, leases, tenure, last, write_timeout }
    }

    /// Whether this replica leads, for the rest of the process.
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Runs until `stop`, then gives the Lease back, so that no other replica has to wait until it expires.
    pub async fn run(mut self, stop: impl Future<Output = Leaving> + Send) {
        let mut stop = std::pin::pin!(stop);
        let leaving = loop {
            let (now, wall) = (self.now(), Timestamp::now());
            self.candidate.note_time(now, identity::fresh);
            self.publish();
            let next = self.candidate.next(now, wall);
            tokio::select! {
                leaving = &mut stop => break leaving,
                () = self.take(next) => {}
            }
        };
        self.release(leaving).await;
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Wait(until) => {
                let at = self.tenure.clock().deadline(until);
                tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.tenure.doubted() => self.candidate.doubt(),
                }
            }
            Step::Read => {
                let reply = self.leases.read().await;
                self.candidate.after_read(self.now(), reply, chance(), identity::fresh);
            }
            Step::Create(lease) => {
                let reply = self.leases.create(&lease).await;
                self.candidate.after_write(self.now(), reply, chance());
            }
            Step::Replace(lease) => {
                let reply = self.leases.replace(&lease).await;
                self.candidate.after_write(self.now(), reply, chance());
            }
        }
    }

    fn now(&self) -> model::Instant {
        self.tenure.clock().now()
    }

    fn publish(&mut self) {
        let leadership = self.candidate.leadership();
        match (&self.last, &leadership) {
            (LeadershipState::Leading(before), LeadershipState::Leading(now))
                if before.is_same(now) => {}
            (_, LeadershipState::Leading(term)) => {
                info!(term = term.name.as_deref(), "leading from now on");
            }
            (LeadershipState::Leading(term), LeadershipState::Following { .. }) => {
                let term = term.name.as_deref();
                warn!(term, "not leading any more; what was under way is given up");
            }
            (
                LeadershipState::Following { leader: before },
                LeadershipState::Following { leader },
            ) => match leader {
                Some(leader) if before.as_ref() != Some(leader) => {
                    info!(%leader, "another replica leads");
                }
                None if before.is_some() => info!("nobody leads"),
                Some(_) | None => {}
            },
        }
        self.last = leadership.clone();
        self.tenure.publish(leadership);
    }

    /// A renewal may have been under way when we were stopped: what it left is what is given back.
    async fn release(&mut self, leaving: Leaving) {
        // From here on the fence lets no write out.
        self.tenure.publish(LeadershipState::Following { leader: None });
        if leaving == Leaving::Broken {
            // What has left already, the API server gives up within this time. The Lease is ours until then, or runs out.
            sleep(self.write_timeout).await;
        }
        let held = self.candidate.release(Timestamp::now());
        let Some(mut lease) = held else { return };
        for _ in 0..RELEASES_MAX {
            match self.leases.replace(&lease).await {
                Reply::Found(_) => {
                    info!("the Lease is given back");
                    return;
                }
                Reply::Conflict => {}
                Reply::NotFound | Reply::Failed => break,
            }
            let Reply::Found(found) = self.leases.read().await else { break };
            match self.candidate.release_found(&found, Timestamp::now()) {
                Some(ours) => lease = ours,
                None => return,
            }
        }
        info!("the Lease could not be given back; it runs out by itself");
    }
}

/// Attempts to give the Lease back: others hardly write it.
const RELEASES_MAX: usize = 3;

/// Where the Lease is, and how long a call may take.
#[derive(Debug)]
struct Leases {
    api: Api<Lease>,
    name: String,
    call_timeout: Duration,
    /// So that an outage is logged once, not at every attempt.
    failing: bool,
}

impl Leases {
    async fn read(&mut self) -> Reply {
        let found = timeout(self.call_timeout, self.api.get(&self.name)).await;
        self.reply(found)
    }

    async fn create(&mut self, lease: &Lease) -> Reply {
        let params = PostParams::default();
        let made = timeout(self.call_timeout, self.api.create(&params, lease)).await;
        match self.reply(made) {
            // Of what is being made, this says that its namespace is not there: no reason to hurry.
            Reply::NotFound => Reply::Failed,
            reply => reply,
        }
    }

    async fn replace(&mut self, lease: &Lease) -> Reply {
        let params = PostParams::default();
        let replaced = self.api.replace(&self.name, &params, lease);
        let replaced = timeout(self.call_timeout, replaced).await;
        self.reply(replaced)
    }

    fn reply(
        &mut self,
        outcome: Result<kube::Result<Lease>, tokio::time::error::Elapsed>,
    ) -> Reply {
        let reply = match &outcome {
            Ok(Ok(lease)) => Reply::Found(Box::new(lease.clone())),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Reply::NotFound,
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Reply::Conflict,
            Ok(Err(_)) | Err(_) => Reply::Failed,
        };
        let failing = reply == Reply::Failed;
        if failing && !self.failing {
            let why = match outcome {
                Ok(Err(error)) => error.to_string(),
                _ => format!("no answer within {:?}", self.call_timeout),
            };
            warn!(lease = self.name, why, "the Lease cannot be read or written; trying again");
        } else if self.failing && !failing {
            info!(lease = self.name, "the Lease can be read and written again");
        }
        self.failing = failing;
        reply
    }
}

/// A random number in 0..1, for jitter only: without the system's randomness there is none.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}
