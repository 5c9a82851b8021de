//! The daemons that the controllers work with.

use std::sync::Arc;

use controllers::{Backends, BackendsConfiguration, CorridorConfiguration, TlsConfiguration};
use daemons::Endpoint;
use daemons::client::{AddressError, Identity, Patience};
use daemons::simulated::{SimulatedConfig, SimulatedDaemons, StartError};
use daemons::ticket::{KeyError, TrustedKeys};

use crate::args::{BackendsArg, RunArgs};
use crate::rotation::{self, Contents, FileError, Files};
use crate::{BAD_CONFIGURATION, FAILURE};

#[derive(Debug, thiserror::Error)]
pub enum BackendsError {
    #[error("--backends http needs --corrd-url, --memqosd-url or both")]
    NoUrl,
    #[error("{name} cannot be used: {source}")]
    BadUrl { name: &'static str, source: AddressError },
    #[error("backends.tls: {0}")]
    Tls(#[from] FileError),
    #[error("attestation.trustedKeys: {0}")]
    TrustedKeys(#[source] KeyError),
    #[error("the simulated daemons cannot start: {0}")]
    Simulated(#[from] StartError),
    #[error("the simulated attestd's keys cannot be read: {0}")]
    Keys(#[source] KeyError),
}

impl BackendsError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoUrl | Self::BadUrl { .. } | Self::Tls(_) | Self::TrustedKeys(_) => {
                BAD_CONFIGURATION
            }
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
    /// Those inside this process, if there are any.
    pub fn simulated(&self) -> Option<&SimulatedDaemons> {
        self.simulated.as_ref()
    }

    /// By name: what is configured and does not renew its Lease is missed.
    pub fn configured(&self) -> impl Iterator<Item = &'static str> {
        let Backends { corrd, memqosd, attestd, .. } = &self.backends;
        let all = [
            ("corrd", corrd.is_some()),
            ("memqosd", memqosd.is_some()),
            ("attestd", attestd.is_some()),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name)
    }

    pub async fn stop(self) {
        if let Some(simulated) = self.simulated {
            simulated.stop().await;
        }
    }
}

/// Without daemons the controllers still run, and say that nothing can be allocated.
pub async fn choose(
    args: &RunArgs,
    configuration: &CorridorConfiguration,
) -> Result<Chosen, BackendsError> {
    match args.backends {
        BackendsArg::None => Ok(Chosen { backends: Backends::default(), simulated: None }),
        BackendsArg::Simulated => simulated(args.seed).await,
        BackendsArg::Http => over_http(args, configuration),
    }
}

/// In memory: they forget everything with the process, and the controllers allocate anew.
pub async fn simulated(seed: u64) -> Result<Chosen, BackendsError> {
    let config = SimulatedConfig { seed, ..SimulatedConfig::default() };
    let daemons = SimulatedDaemons::start(config).await?;
    let url = daemons.url();
    let endpoint = Endpoint::new(&url, Patience::default());
    let endpoint = Arc::new(
        endpoint
            .map_err(|source| BackendsError::BadUrl { name: "--backends simulated", source })?,
    );
    let backends = Backends {
        corrd: Some(endpoint.clone()),
        memqosd: Some(endpoint.clone()),
        attestd: Some(endpoint),
        trusted_keys: TrustedKeys::read(daemons.trusted_keys()).map_err(BackendsError::Keys)?,
    };
    Ok(Chosen { backends, simulated: Some(daemons) })
}

fn over_http(
    args: &RunArgs,
    configuration: &CorridorConfiguration,
) -> Result<Chosen, BackendsError> {
    let BackendsConfiguration { corrd_url, memqosd_url, attestd_url, tls } =
        &configuration.backends;
    let mut files = tls.as_ref().map(files);
    let identity = files.as_mut().map(Files::read_first).transpose()?.map(identity);
    let endpoint = |name, flag: &Option<String>, configured: &Option<String>| {
        let Some(url) = flag.as_ref().or(configured.as_ref()) else { return Ok(None) };
        Endpoint::with_identity(url, Patience::default(), identity.as_ref())
            .map(|endpoint| Some(Arc::new(endpoint)))
            .map_err(|source| BackendsError::BadUrl { name, source })
    };
    let corrd = endpoint("--corrd-url", &args.corrd_url, corrd_url)?;
    let memqosd = endpoint("--memqosd-url", &args.memqosd_url, memqosd_url)?;
    let attestd = endpoint("--attestd-url", &args.attestd_url, attestd_url)?;
    if corrd.is_none() && memqosd.is_none() {
        return Err(BackendsError::NoUrl);
    }
    let trusted_keys = TrustedKeys::read(&configuration.attestation.trusted_keys)
        .map_err(BackendsError::TrustedKeys)?;
    if let Some(files) = files {
        let endpoints = [&corrd, &memqosd, &attestd].into_iter().flatten().cloned().collect();
        follow(files, endpoints);
    }
    let backends = Backends {
        corrd: corrd.map(|it| it as _),
        memqosd: memqosd.map(|it| it as _),
        attestd: attestd.map(|it| it as _),
        trusted_keys,
    };
    Ok(Chosen { backends, simulated: None })
}

/// Certificates end, so others take their place while we run.
fn follow(files: Files<3>, endpoints: Vec<Arc<Endpoint>>) {
    let take = move |contents| {
        let identity = identity(contents);
        // What one of them refuses, all do: they look at the same files.
        let mut outcomes = endpoints.iter().map(|endpoint| endpoint.set_identity(&identity));
        outcomes.try_for_each(|outcome| outcome.map_err(|error| error.to_string()))
    };
    tokio::spawn(rotation::follow("backends.tls", files, take));
}

fn files(tls: &TlsConfiguration) -> Files<3> {
    Files::new([tls.ca_file.clone(), tls.cert_file.clone(), tls.key_file.clone()])
}

fn identity([ca, certificate, key]: Contents<3>) -> Identity {
    Identity { ca, certificate, key }
}
