//! The controllers that own Corridors, MemoryBundles and AttestationPolicies.
//!
//! Every kind has a folder whose files are the steps of one reconcile: `observe` (the object and its daemon), `plan`
//! (pure: at most one operation), `apply` (carries it out), `status` (pure). `controller-runtime` reconciles each
//! object one at a time; [`lifecycle`] is the lifecycle of an object that stands for an allocation, whatever its kind. The scheduler's
//! driver is never called: both halves meet at the API server and in `own-writes`.
//!
//! An allocation never leaks, because the order is fixed: finalizer and intent first, then the daemon; and the reverse at
//! the end. Each reconcile writes the status before it carries its operation out. A crash at any point leaves a state from
//! which the next reconcile goes on.

mod attestation;
mod attestation_policy;
mod configuration;
mod context;
mod corridor;
mod feed;
mod lifecycle;
mod memory_bundle;
mod metrics;
mod settings;
mod sweep;
mod tampering;
mod telemetry_cache;

use std::fmt;
use std::sync::Arc;

use controller_runtime::{ApiClient, Controller};
use kube::{Client, Resource as _};
use own_writes::OwnWrites;
use parking_lot::Mutex;
use prometheus::IntCounterVec;
use thiserror::Error;
use tokio::task::JoinSet;

use crate::attestation_policy::PolicyController;
pub use crate::configuration::{
    BackendsConfiguration, ConfigurationError, CorridorConfiguration, TlsConfiguration,
};
use crate::context::Context;
use crate::corridor::Corridors;
use crate::lifecycle::AllocationController;
use crate::memory_bundle::Bundles;
pub use crate::metrics::Metrics;
pub use crate::settings::{Backends, Settings};
use crate::tampering::Alarms;

/// All controllers, ready to run.
pub struct Controllers {
    client: Client,
    backends: Backends,
    /// Used by the next run.
    settings: Mutex<Settings>,
    metrics: Arc<Metrics>,
    tampering: Option<IntCounterVec>,
    own_writes: Arc<OwnWrites>,
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controllers")
            .field("backends", &self.backends)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Controllers {
    pub fn new(client: Client, backends: Backends, settings: Settings) -> Self {
        let metrics = Arc::new(Metrics::new(&settings.cluster_name));
        let settings = Mutex::new(settings);
        Self { client, backends, settings, metrics, tampering: None, own_writes: Arc::default() }
    }

    /// Takes effect with the next [`Self::run`].
    pub fn set(&self, settings: Settings) {
        *self.settings.lock() = settings;
    }

    /// Where tampering is counted, by kind.
    #[must_use]
    pub fn counting_tampering(mut self, counter: IntCounterVec) -> Self {
        self.tampering = Some(counter);
        self
    }

    /// For the driver of the same process, which records its own writes there too.
    pub fn own_writes(&self) -> Arc<OwnWrites> {
        self.own_writes.clone()
    }

    /// The series of the controllers, which the process serves.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Runs until `stop`, and then drops what is under way: the next run, in this replica or another, goes on from
    /// there.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        let mut stop = std::pin::pin!(stop);
        let recording = Recording(self.own_writes.clone());
        let api = ApiClient::new(self.client.clone(), crds::CONTROLLERS_MANAGER);
        let alarms = Alarms::new(api.clone(), self.tampering.clone());
        let starting = Context::start(
            api,
            self.backends.clone(),
            self.settings.lock().clone(),
            self.metrics.clone(),
            recording.0.clone(),
            alarms,
        );
        let context = tokio::select! {
            () = &mut stop => return Ok(()),
            context = starting => Arc::new(context),
        };
        let mut tasks = all(&context);
        let ended = tokio::select! {
            () = stop => Ok(()),
            ended = tasks.join_next() => {
                let why = match ended {
                    Some(Err(error)) => error.to_string(),
                    _ => "it returned".to_owned(),
                };
                Err(RunError::Ended { why })
            }
        };
        tasks.shutdown().await;
        self.metrics.forget_objects();
        ended
    }
}

/// Ends the record of the controllers' writes with the run: afterwards another process may write.
struct Recording(Arc<OwnWrites>);

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.forget_controllers();
    }
}

/// Everything that runs. A new controller is one line here.
fn all(context: &Arc<Context>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(run::<PolicyController>(context));
    tasks.spawn(run::<AllocationController<Corridors>>(context));
    tasks.spawn(run::<AllocationController<Bundles>>(context));
    tasks.spawn(feed::telemetry::<Corridors>(context.clone()));
    tasks.spawn(feed::telemetry::<Bundles>(context.clone()));
    tasks.spawn(feed::attestd(context.clone()));
    tasks.spawn(sweep::run::<Corridors>(context.clone()));
    tasks.spawn(sweep::run::<Bundles>(context.clone()));
    tasks
}

fn run<C: Controller<Context = Context>>(
    context: &Arc<Context>,
) -> impl Future<Output = ()> + use<C> {
    let reconciles = context.metrics.reconciles(&C::Object::kind(&()));
    let backoff = context.settings.backoff();
    controller_runtime::run::<C>(context.clone(), context.api.clone(), backoff, reconciles)
}

/// Why the controllers stopped before they were asked to.
#[derive(Debug, Error)]
pub enum RunError {
    #[error("a controller's task ended: {why}")]
    Ended { why: String },
}
