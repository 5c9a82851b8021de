//! The same routes over TLS, for users that the API server authorizes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use kube::Client;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::access::{self, AccessDecision, Action, CachedAuthority, OPEN_PATHS, User};
use super::api::failure;
use super::certificates::{self, CertificateError};
use super::fair_pace::Requester;
use super::pace::{Bucket, Pace};
use super::reviews::ApiServer;
use crate::args::HttpsArgs;
use crate::{BAD_CONFIGURATION, FAILURE};

/// Connections at a time. Scrapers and people are few; the others wait to be accepted.
const CONNECTIONS_MAX: usize = 128;
/// For the handshake: a few round trips.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Between requests, and for the head of one. A scraper with a longer interval connects again.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// From the head of a request to the head of its answer, with a slow body in between.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// For a connection as a whole, so that a slow reader does not hold one, and every client comes to
/// see a new certificate.
const CONNECTION_TIME_MAX: Duration = Duration::from_mins(10);
/// For the request under way when that time is over.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(10);
/// A token of the largest kind and what browsers add.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// After a failure to accept: the process has too many open files, and that does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum HttpsError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot serve HTTPS on {address}: {source}; choose another address with --https")]
    Bind { address: SocketAddr, source: io::Error },
}

impl HttpsError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Certificate(CertificateError::SelfSigned(_)) | Self::Bind { .. } => FAILURE,
            Self::Certificate(_) => BAD_CONFIGURATION,
        }
    }
}

/// Warnings that requests cannot be authorized: repeated requests must not fill the log.
const WARNING_PACE: Pace = Pace { per_second: 1, burst: 1 };

struct Gate {
    answers: Mutex<CachedAuthority>,
    authority: ApiServer,
    warnings: Mutex<Bucket>,
}

/// Serves until the process ends, if that was asked for. Returns the address.
pub async fn serve(
    args: &HttpsArgs,
    routes: Router,
    client: Client,
) -> Result<Option<SocketAddr>, HttpsError> {
    let Some(address) = args.https else { return Ok(None) };
    let files = args.tls_cert_file.clone().zip(args.tls_private_key_file.clone());
    let acceptor = TlsAcceptor::from(certificates::config(files, address)?);
    let failed = |source| HttpsError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let gate = Gate {
        answers: Mutex::default(),
        authority: ApiServer::new(client),
        warnings: Mutex::new(Bucket::new(WARNING_PACE)),
    };
    let guarded = routes.layer(middleware::from_fn_with_state(Arc::new(gate), guard));
    tokio::spawn(accept(listener, acceptor, guarded));
    Ok(Some(address))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, routes: Router) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // It is never closed.
    while let Ok(place) = free.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (acceptor, routes) = (acceptor.clone(), routes.clone());
                tokio::spawn(async move {
                    if let Err(why) = converse(stream, acceptor, routes).await {
                        debug!(%peer, "an HTTPS connection ended: {why}");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                debug!(%error, "no HTTPS connection could be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// One connection, from its handshake to its end.
async fn converse(stream: TcpStream, acceptor: TlsAcceptor, routes: Router) -> Result<(), String> {
    let _ = stream.set_nodelay(true);
    let stream = timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream))
        .await
        .map_err(|_| "no handshake in time".to_owned())?
        .map_err(|error| error.to_string())?;
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE_TIME_MAX);
    server.max_header_size(HEAD_BYTES_MAX);
    let connection =
        server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut connection = std::pin::pin!(connection);
    if let Ok(ended) = timeout(CONNECTION_TIME_MAX, connection.as_mut()).await {
        return ended.map_err(|error| error.to_string());
    }
    connection.as_mut().graceful_shutdown();
    match timeout(FAREWELL_TIME_MAX, connection).await {
        Ok(ended) => ended.map_err(|error| error.to_string()),
        Err(_) => Err("its time is over".to_owned()),
    }
}

/// Only requests that the API server authorizes pass.
async fn guard(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    if !OPEN_PATHS.contains(&request.uri().path()) {
        match gate.judge(request.method(), request.uri().path(), request.headers()).await {
            Ok(user) => request.extensions_mut().insert(Requester::of_user(&user.name)),
            Err(refused) => return *refused,
        };
    }
    match timeout(REQUEST_TIME_MAX, next.run(request)).await {
        Ok(response) => response,
        Err(_) => failure(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"),
    }
}

impl Gate {
    /// The user of the request, if it is authorized.
    async fn judge(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Arc<User>, Box<Response>> {
        let (verb, name) = (method.as_str().to_ascii_lowercase(), access::name_in_roles(path));
        let action = Action { verb: &verb, path: &name };
        let verdict = match access::bearer(headers) {
            Ok(token) => {
                let now = Instant::now();
                access::judge(&self.answers, &self.authority, token, action, now).await
            }
            Err(why) => AccessDecision::NoToken(why),
        };
        if let AccessDecision::Unavailable(why) = &verdict
            && self.warnings.lock().take(Instant::now()).is_ok()
        {
            warn!("a request over HTTPS cannot be judged: {why}");
        }
        allowed_user(verdict, action)
    }
}

fn allowed_user(verdict: AccessDecision, action: Action<'_>) -> Result<Arc<User>, Box<Response>> {
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let refused = match verdict {
        AccessDecision::Allowed(user) => return Ok(user),
        AccessDecision::NoToken(why) => {
            let why = format!("{why}: `Authorization: Bearer TOKEN`, as for the API server");
            (challenge, failure(StatusCode::UNAUTHORIZED, why)).into_response()
        }
        AccessDecision::BadToken => {
            let why = "the API server does not know this token: it may have expired";
            (challenge, failure(StatusCode::UNAUTHORIZED, why)).into_response()
        }
        AccessDecision::Forbidden(user) => {
            let Action { verb, path } = action;
            let why = format!(
                "user {user:?} may not {verb} {path:?}: that takes a ClusterRole with it in \
                 nonResourceURLs, like corridor-metrics-reader"
            );
            failure(StatusCode::FORBIDDEN, why)
        }
        AccessDecision::Unavailable(why) => failure(StatusCode::SERVICE_UNAVAILABLE, why),
    };
    Err(Box::new(refused))
}
