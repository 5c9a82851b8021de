//! How the API server is reached.

use std::path::Path;
use std::time::Duration;

use driver::Fence;
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::util::{MapErr, option_layer};
use tower::{BoxError, Layer as _};
use tracing::warn;

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

/// The flag's kubeconfig, else in-cluster, else `$KUBECONFIG` or `~/.kube/config`.
pub async fn find(kubeconfig: Option<&Path>) -> Result<Config, ClientError> {
    let options = KubeConfigOptions::default();
    let mut config = match kubeconfig {
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
    prepare(&mut config);
    if config.accept_invalid_certs {
        // kube says so too, without a reason, for each connection: `logging` leaves that out.
        warn!(
            "the API server's certificate is not verified: the kubeconfig says insecure-skip-tls-verify. Whoever is on \
             the way can read and change everything; name the certificate-authority there instead"
        );
    }
    Ok(config)
}

/// A connection that is silent for this long is dead. Longer than a watch lasts, so that a quiet
/// one is not taken for it; a list that hangs would otherwise hang for ever.
const SILENCE_MAX: Duration = Duration::from_secs(40);

/// How long a watch may last: the API server ends it and it is asked for anew, before a quiet connection counts as
/// dead. A watch that dies is reported, and asked for after a pause that grows.
pub const WATCH_SECONDS_MAX: u32 = 25;

/// What every client of ours needs, wherever its configuration comes from.
pub fn prepare(config: &mut Config) {
    // kube would repeat a Binding by itself, up to 15 times: then its outcome is unknown.
    config.default_retry = false;
    config.read_timeout = Some(SILENCE_MAX);
}

/// For the election itself and for questions: it may always write.
pub fn unfenced(config: &Config) -> Result<Client, ClientError> {
    Client::try_from(config.clone()).map_err(ClientError::Client)
}

/// For the scheduler and the controllers: it writes only while this replica leads.
pub fn fenced(config: &Config, fence: &Fence) -> Result<Client, ClientError> {
    let builder = ClientBuilder::try_from(config.clone()).map_err(ClientError::Client)?;
    Ok(builder.with_layer(fence).build())
}

/// For what the scheduler itself writes, a thousand times a second: nothing stands between a call and its connection but
/// the fence and the credentials. Each of its calls has a time-out of its own.
pub fn writing(config: &Config, fence: &Fence) -> Result<Client, ClientError> {
    if config.auth_info.exec.is_some() {
        // Certificates that a program hands out end some time, and kube knows when.
        return fenced(config, fence);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // Or a call now and then waits 40 ms for an acknowledgement that is put off.
    tcp.set_nodelay(true);
    let tls = config.rustls_https_connector_with_connector(tcp).map_err(ClientError::Client)?;
    let connections: Connections<_, Body> = Connections::builder(TokioExecutor::new()).build(tls);
    let connections = MapErr::new(connections, BoxError::from);
    let headers = config.extra_headers_layer().map_err(ClientError::Client)?;
    let identity = config.auth_layer().map_err(ClientError::Client)?;
    let known = option_layer(identity).layer(headers.layer(connections));
    let service = fence.layer(config.base_uri_layer().layer(known));
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}
