//! The daemons that the controllers work with.

use std::sync::Arc;

use controllers::Backends;
use daemons::Endpoint;
use daemons::client::{AddressError, Patience};
use daemons::simulated::{SimulatedConfig, SimulatedDaemons, StartError};
use daemons::ticket::{KeyError, TrustedKeys};

use crate::args::{BackendsArg, RunArgs};
use crate::{BAD_CONFIGURATION, FAILURE};

#[derive(Debug, thiserror::Error)]
pub enum BackendsError {
    #[error("--backends http needs --corrd-url, --memqosd-url or both")]
    NoUrl,
    #[error("{flag} cannot be used: {source}")]
    BadUrl { flag: &'static str, source: AddressError },
    #[error("the simulated daemons cannot start: {0}")]
    Simulated(#[from] StartError),
    #[error("the simulated attestd's keys cannot be read: {0}")]
    Keys(#[from] KeyError),
}

impl BackendsError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoUrl | Self::BadUrl { .. } => BAD_CONFIGURATION,
            Self::Simulated(_) | Self::Keys(_) => FAILURE,
        }
    }
}

/// What the controllers need, and the daemons that live and die with this process.
pub struct Chosen {
    pub backends: Backends,
    simulated: Option<SimulatedDaemons>,
}

impl Chosen {
    pub async fn stop(self) {
        if let Some(simulated) = self.simulated {
            simulated.stop().await;
        }
    }
}

/// `None` when no backend is asked for.
pub async fn choose(args: &RunArgs) -> Result<Option<Chosen>, BackendsError> {
    match args.backends {
        BackendsArg::None => Ok(None),
        BackendsArg::Simulated => simulated(args.seed).await.map(Some),
        BackendsArg::Http => over_http(args).map(Some),
    }
}

/// In memory: they forget everything with the process, and the controllers allocate anew.
pub async fn simulated(seed: u64) -> Result<Chosen, BackendsError> {
    let config = SimulatedConfig { seed, ..SimulatedConfig::default() };
    let daemons = SimulatedDaemons::start(config).await?;
    let endpoint = Arc::new(endpoint("--backends simulated", &daemons.url())?);
    let backends = Backends {
        corrd: Some(endpoint.clone()),
        memqosd: Some(endpoint.clone()),
        attestd: Some(endpoint),
        trusted_keys: TrustedKeys::read(daemons.trusted_keys())?,
    };
    Ok(Chosen { backends, simulated: Some(daemons) })
}

fn over_http(args: &RunArgs) -> Result<Chosen, BackendsError> {
    if args.corrd_url.is_none() && args.memqosd_url.is_none() {
        return Err(BackendsError::NoUrl);
    }
    let mut backends = Backends::default();
    if let Some(url) = &args.corrd_url {
        backends.corrd = Some(Arc::new(endpoint("--corrd-url", url)?));
    }
    if let Some(url) = &args.memqosd_url {
        backends.memqosd = Some(Arc::new(endpoint("--memqosd-url", url)?));
    }
    Ok(Chosen { backends, simulated: None })
}

fn endpoint(flag: &'static str, url: &str) -> Result<Endpoint, BackendsError> {
    let bad = |source| BackendsError::BadUrl { flag, source };
    Endpoint::new(url, Patience::default()).map_err(bad)
}
