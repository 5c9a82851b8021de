//! How the API server is reached.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "no way to the API server: not in a cluster, and no kubeconfig could be used: {0}\n\
         Name one with --kubeconfig FILE or $KUBECONFIG."
    )]
    NoKubeconfig(#[source] KubeconfigError),
    #[error("kubeconfig {path} cannot be used: {source}")]
    BadKubeconfig { path: String, source: KubeconfigError },
    #[error("cannot set up the connection to the API server: {0}")]
    Client(#[source] kube::Error),
}

/// A client for the flag's kubeconfig, else in-cluster, else `$KUBECONFIG` or `~/.kube/config`.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ClientError> {
    let options = KubeConfigOptions::default();
    let config = match kubeconfig {
        Some(path) => {
            let bad =
                |source| ClientError::BadKubeconfig { path: path.display().to_string(), source };
            let kubeconfig = Kubeconfig::read_from(path).map_err(bad)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(bad)?
        }
        None => match Config::incluster() {
            Ok(config) => config,
            Err(_) => Config::from_kubeconfig(&options).await.map_err(ClientError::NoKubeconfig)?,
        },
    };
    from_config(config)
}

/// A connection that is silent for this long is dead. Longer than a watch lasts, so that a quiet
/// one is not taken for it; a list that hangs would otherwise hang for ever.
const SILENCE_MAX: Duration = Duration::from_secs(40);

pub fn from_config(mut config: Config) -> Result<Client, ClientError> {
    // kube would repeat a Binding by itself, up to 15 times: then nobody knows its outcome.
    config.default_retry = false;
    config.read_timeout = Some(SILENCE_MAX);
    Client::try_from(config).map_err(ClientError::Client)
}
