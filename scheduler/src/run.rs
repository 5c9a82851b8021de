//! `corridor-scheduler run`: one replica against a real API server.

use std::net::SocketAddr;
use std::sync::Arc;

use controllers::{Controllers, Settings};
use driver::{Driver, DriverError, Health, Metrics};
use engine::EngineConfig;
use futures::{FutureExt, TryFutureExt};
use tracing::{info, warn};

use crate::args::RunArgs;
use crate::backends::{self, BackendsError};
use crate::client::{self, ClientError};
use crate::configuration::{Configuration, ConfigurationError};
use crate::http::{self, Status};
use crate::{BAD_CONFIGURATION, FAILURE, stop};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("cannot serve HTTP on {address}: {source}; choose another address with --http")]
    Http { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Backends(#[from] BackendsError),
    #[error(transparent)]
    Controllers(#[from] controllers::RunError),
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl RunError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Client(_) | Self::Configuration(_) => BAD_CONFIGURATION,
            Self::Backends(error) => error.exit_code(),
            Self::Signals(_)
            | Self::Metrics(_)
            | Self::Http { .. }
            | Self::Controllers(_)
            | Self::Driver(_) => FAILURE,
        }
    }
}

pub async fn run(args: RunArgs) -> Result<(), RunError> {
    let stop = stop::requested().map_err(RunError::Signals)?.shared();
    let configuration = Configuration::load(args.config.as_deref())?;
    for note in &configuration.scheduler.notes {
        warn!("configuration: {note}");
    }
    let chosen = backends::choose(&args, &configuration.corridor).await?;
    let client = client::connect(args.kubeconfig.as_deref()).await?;
    let settings = Settings { cluster_name: args.cluster_name.clone(), ..configuration.settings };
    let (health, metrics) =
        (Arc::new(Health::default()), Arc::new(Metrics::new(&args.cluster_name)?));
    let controllers = Controllers::new(client.clone(), chosen.backends.clone(), settings)
        .counting_tampering(metrics.tampering());
    let config = EngineConfig { seed: args.seed, ..configuration.scheduler.engine };
    let driver = Driver::new(client, config, metrics.clone(), health.clone())
        .with_witness(controllers.witness());
    let status = Status {
        health,
        metrics,
        controllers: controllers.metrics(),
        questions: driver.questions(),
    };
    let address = http::serve(args.http, status)
        .await
        .map_err(|source| RunError::Http { address: args.http, source })?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        scheduler_name = crds::SCHEDULER_NAME,
        http = %address,
        "started"
    );
    // Neither half runs on without the other: whoever starts this process again starts both.
    tokio::try_join!(
        driver.run(stop.clone()).map_err(RunError::from),
        controllers.run(stop).map_err(RunError::from)
    )?;
    chosen.stop().await;
    info!("stopped");
    Ok(())
}
