//! `corridor-scheduler daemons`: corrd, memqosd and attestd, simulated, as one process.

use daemons::simulated::{SimulatedConfig, SimulatedDaemons, StartError};
use tracing::info;

use crate::args::DaemonsArgs;
use crate::stop;

#[derive(Debug, thiserror::Error)]
pub enum DaemonsError {
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    #[error("the daemons cannot start: {0}")]
    Start(#[from] StartError),
}

pub async fn serve(args: DaemonsArgs) -> Result<(), DaemonsError> {
    let stop = stop::requested()?;
    let daemons = SimulatedDaemons::start(SimulatedConfig {
        listen: args.http,
        state_dir: Some(args.state_dir),
        seed: args.seed,
        enable_admin: args.enable_admin,
        ..SimulatedConfig::default()
    })
    .await?;
    info!(url = %daemons.url(), admin = args.enable_admin, "corrd, memqosd and attestd are served");
    stop.await;
    daemons.stop().await;
    info!("stopped");
    Ok(())
}
