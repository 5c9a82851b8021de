//! `corridor-scheduler daemons`: corrd, memqosd and attestd, simulated, as one process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use controllers::CorridorConfiguration;
use daemons::simulated::{SimulatedConfig, SimulatedDaemons, StartError};
use daemons::ticket::TrustedKey;
use serde_json::json;
use tracing::info;

use crate::args::DaemonsArgs;
use crate::stop;

/// In the state folder: what `run --config` needs to verify the tickets of this attestd.
const TRUSTED_KEYS_FILE: &str = "trusted-keys.yaml";

#[derive(Debug, thiserror::Error)]
pub enum DaemonsError {
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    #[error("the daemons cannot start: {0}")]
    Start(#[from] StartError),
    #[error("cannot write {path}: {why}")]
    Keys { path: PathBuf, why: String },
}

pub async fn serve(args: DaemonsArgs) -> Result<(), DaemonsError> {
    let stop = stop::requested()?;
    let keys_path = args.state_dir.join(TRUSTED_KEYS_FILE);
    let daemons = SimulatedDaemons::start(SimulatedConfig {
        listen: args.http,
        state_dir: Some(args.state_dir),
        seed: args.seed,
        enable_admin: args.enable_admin,
        lease_ttl: Duration::from_secs(args.lease_ttl_seconds),
        ticket_ttl: Duration::from_secs(args.ticket_ttl_seconds),
        ..SimulatedConfig::default()
    })
    .await?;
    write_keys(&keys_path, daemons.trusted_keys())?;
    info!(
        url = %daemons.url(),
        admin = args.enable_admin,
        trusted_keys = %keys_path.display(),
        "corrd, memqosd and attestd are served"
    );
    stop.await;
    daemons.stop().await;
    info!("stopped");
    Ok(())
}

fn write_keys(path: &Path, keys: &[TrustedKey]) -> Result<(), DaemonsError> {
    let failed = |why: String| DaemonsError::Keys { path: path.to_owned(), why };
    let document = json!({
        "apiVersion": crds::API_VERSION,
        "kind": CorridorConfiguration::KIND,
        "attestation": { "trustedKeys": keys },
    });
    let text = serde_saphyr::to_string(&document).map_err(|error| failed(error.to_string()))?;
    std::fs::write(path, text).map_err(|error| failed(error.to_string()))
}
