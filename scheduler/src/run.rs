//! `corridor-scheduler run`: one replica against a real API server.

use std::net::SocketAddr;
use std::sync::Arc;

use driver::{Driver, DriverError, Health, Metrics};
use engine::EngineConfig;
use tracing::info;

use crate::args::RunArgs;
use crate::client::{self, ClientError};
use crate::http::{self, Status};
use crate::{BAD_CONFIGURATION, FAILURE, stop};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("cannot serve HTTP on {address}: {source}; choose another address with --http")]
    Http { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl RunError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Client(_) => BAD_CONFIGURATION,
            Self::Signals(_) | Self::Metrics(_) | Self::Http { .. } | Self::Driver(_) => FAILURE,
        }
    }
}

pub async fn run(args: RunArgs) -> Result<(), RunError> {
    let stop = stop::requested().map_err(RunError::Signals)?;
    let client = client::connect(args.kubeconfig.as_deref()).await?;
    let (health, metrics) = (Arc::new(Health::default()), Arc::new(Metrics::new()?));
    let status = Status { health: health.clone(), metrics: metrics.clone() };
    let address = http::serve(args.http, status)
        .await
        .map_err(|source| RunError::Http { address: args.http, source })?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        scheduler_name = crds::SCHEDULER_NAME,
        http = %address,
        "started"
    );
    let config = EngineConfig { seed: args.seed, ..EngineConfig::default() };
    Driver::new(client, config, metrics, health).run(stop).await?;
    info!("stopped");
    Ok(())
}
