//! Daemons that keep the whole contract without any hardware.
//!
//! Readings come from seeded physics, pools are finite, leases run out, and the state survives a
//! kill. With `enable_admin` tests can force readings, order faults and restart with or without
//! state:
//!
//! | Call | Body |
//! |---|---|
//! | `PUT /admin/corridors/{id}` | `{"achievable_gbps":40}`, also `latency_ns`, `ber_drift_decades`, `recalibration_fails`; `{}` gives the path back to physics |
//! | `PUT /admin/ffm/{handle}` | `{"achieved_GBs":4}`, also `tail_p99_ms`; `{}` as above |
//! | `PUT /admin/devices/{id}` | `{"claims":{…},"firmware":"…"}`, also `labels`, `pqc`; what is absent stays |
//! | `POST /admin/faults` | `{"kind":"lost_reply\|slow\|http_5xx\|garbage","route":"POST /v1/corridors","count":1}`, for `slow` also `delay_ms` |
//! | `DELETE /admin/faults` | forgets all orders |
//! | `POST /admin/restart` | `{"keep_state":false}`: only durable bundles survive, and ids begin again |

mod config;
mod daemon;
mod faults;
mod feed;
mod ledger;
mod memory;
mod metrics;
mod noise;
mod photonics;
mod records;
mod routes;
mod server;
mod store;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::config::{Clock, Pools, SimulatedConfig, TierPool};
use self::daemon::Daemon;
use self::records::{CorridorRecord, ForcedCorridor};
pub use self::store::StoreError;
use crate::refusal::Refusal;
use crate::ticket::{KeyError, TrustedKey};

/// How often leases and samples are looked at. A hundred times finer than a lease.
const TICK: Duration = Duration::from_millis(200);

/// corrd, memqosd and attestd on one address. They stop when this is dropped.
#[derive(Debug)]
pub struct SimulatedDaemons {
    addr: SocketAddr,
    daemon: Arc<Daemon>,
    stopping: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl SimulatedDaemons {
    /// Opens the state and serves until stopped or dropped.
    pub async fn start(config: SimulatedConfig) -> Result<Self, StartError> {
        if !config.listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(config.listen));
        }
        let listener = TcpListener::bind(config.listen).await.map_err(StartError::Listen)?;
        let addr = listener.local_addr().map_err(StartError::Listen)?;
        let daemon = tokio::task::spawn_blocking(|| Daemon::open(config))
            .await
            .map_err(|_| StartError::Interrupted)??;
        let (stopping, stopped) = watch::channel(false);
        let router = routes::router(daemon.clone());
        let tasks = vec![
            tokio::spawn(server::serve(listener, router, stopped.clone())),
            tokio::spawn(tick(daemon.clone(), stopped)),
        ];
        Ok(Self { addr, daemon, stopping, tasks })
    }

    /// Where they listen, e.g. `http://127.0.0.1:7080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The public keys of attestd, for the configuration of those who verify its tickets.
    pub fn trusted_keys(&self) -> &[TrustedKey] {
        self.daemon.trusted_keys()
    }

    pub fn clock(&self) -> &Clock {
        &self.daemon.config.clock
    }

    /// Looks at leases and samples at once, for tests that moved the clock.
    pub fn tick(&self) {
        self.daemon.tick();
    }

    /// Lets a path carry so much and no more; `None` gives it back to physics. The same as
    /// `PUT /admin/corridors/{id}`, for a caller in the same process.
    pub async fn force_capacity(
        &self,
        corridor_id: &str,
        achievable_gbps: Option<f64>,
    ) -> Result<(), Refusal> {
        let id = corridor_id.to_owned();
        let forced = ForcedCorridor { achievable_gbps, ..ForcedCorridor::default() };
        self.daemon
            .transact(move |ledger, _, _| ledger.plan_forced::<CorridorRecord>(&id, forced))
            .await
    }

    /// Stops serving and lets go of the state.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        for task in std::mem::take(&mut self.tasks) {
            // A task that panicked has stopped too.
            let _ = task.await;
        }
    }
}

impl Drop for SimulatedDaemons {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
    }
}

async fn tick(daemon: Arc<Daemon>, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(TICK) => {}
        }
        let daemon = daemon.clone();
        if tokio::task::spawn_blocking(move || daemon.tick()).await.is_err() {
            return;
        }
    }
}

/// Why the daemons did not start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("{0} is not a loopback address, and the simulated daemons ask for no credentials")]
    NotLoopback(SocketAddr),
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("no metrics: {0}")]
    Metrics(prometheus::Error),
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    #[error("the runtime ended")]
    Interrupted,
}
