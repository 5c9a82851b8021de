//! One request and its reply: deadline, bounds, and repeats where they are safe.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::RwLock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout_at};

use super::complaint::complaint;
use super::tls::{self, Identity};
use crate::error::DaemonError;
use crate::refusal::{Refusal, RefusalReason};

/// A list of 100,000 corridors has about 40 MB; nothing honest is larger.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Tries of a request that may be repeated: enough for a daemon's restart of a second.
const TRIES_MAX: u32 = 3;
/// Pause before the second try; doubles after that.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// What is repeated of the reason that a failing daemon gives: it ends up in conditions.
const REASON_BYTES_MAX: usize = 512;
/// Idle connections to one daemon. More calls than this at once open further ones.
const IDLE_CONNECTIONS_MAX: usize = 16;

/// How long a caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For a whole call, its repeats included. A long poll has its own wait on top.
    pub call: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), call: Duration::from_secs(5) }
    }
}

/// A daemon at a URL. Cheap to clone; clones share connections.
///
/// Without an [`Identity`], `https` trusts the certificates of the operating system, or those in the
/// file that the variable `SSL_CERT_FILE` names.
#[derive(Clone)]
pub struct Endpoint {
    base: String,
    patience: Patience,
    /// Replaced as a whole, connections and all, when we get a new identity.
    connections: Arc<RwLock<Connections>>,
}

type Connections = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base", &self.base)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// A call on its way.
pub(crate) struct Call {
    pub action: &'static str,
    pub method: Method,
    /// Path and query, already escaped.
    pub target: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// Whether carrying it out twice is the same as once.
    pub repeatable: bool,
    /// How long the daemon was asked to hold the call.
    pub hold: Duration,
}

impl Call {
    pub(crate) fn new(action: &'static str, method: Method, target: String) -> Self {
        // What POST means differs from call to call; all else is repeatable by HTTP's own rules, or
        // (PATCH) because the contract's bodies set values instead of adding to them.
        let repeatable = method != Method::POST;
        let (headers, body) = (Vec::new(), Vec::new());
        Self { action, method, target, headers, body, repeatable, hold: Duration::ZERO }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Self {
        // Structs of plain fields always serialize; an empty body would be refused as malformed.
        self.body = serde_json::to_vec(body).unwrap_or_default();
        self
    }

    pub(super) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Asks the daemon to hold the call. Who polls comes back anyway, so it is not repeated.
    pub(crate) fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self.repeatable = false;
        self
    }
}

/// An answer that is either a success or a refusal.
pub(super) struct Answer {
    action: &'static str,
    pub status: StatusCode,
    body: Bytes,
}

impl Answer {
    /// The value in the body.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, DaemonError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| DaemonError::Decode { action: self.action, why: error.to_string() })
    }
}

impl Endpoint {
    /// `url` as in `http://127.0.0.1:7080`, with a path if the daemon stands behind one.
    pub fn new(url: &str, patience: Patience) -> Result<Self, AddressError> {
        Self::with_identity(url, patience, None)
    }

    /// The same with mutual TLS.
    pub fn with_identity(
        url: &str,
        patience: Patience,
        identity: Option<&Identity>,
    ) -> Result<Self, AddressError> {
        let malformed = |why: &str| AddressError::Malformed { url: url.into(), why: why.into() };
        let uri: Uri = url.parse().map_err(|_| malformed("it is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(malformed("it needs http:// or https:// and a host"));
        }
        if uri.query().is_some() {
            return Err(malformed("it must not have a query"));
        }
        let is_https = uri.scheme_str() == Some("https");
        if identity.is_some() && !is_https {
            return Err(malformed("certificates are configured, so it must begin with https://"));
        }
        let connections = Arc::new(RwLock::new(connections(patience, is_https, identity)?));
        Ok(Self { base: url.trim_end_matches('/').to_owned(), patience, connections })
    }

    /// From now on, new calls trust and show what `identity` says; calls under way end as they are.
    /// One that cannot be used is refused, and all stays as it is.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), AddressError> {
        let renewed = connections(self.patience, true, Some(identity))?;
        *self.connections.write() = renewed;
        Ok(())
    }

    pub fn url(&self) -> &str {
        &self.base
    }

    /// Sends a call, repeats it if that is safe and helps, and sorts the outcome.
    pub(super) async fn send(&self, call: Call) -> Result<Answer, DaemonError> {
        let patience = self.patience.call + call.hold;
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES_MAX {
            let outcome = self.send_once(&call, deadline, patience).await;
            match outcome {
                Err(error) if may_repeat(&call, &error) => {
                    if Instant::now() + pause >= deadline {
                        return Err(error);
                    }
                    sleep(pause).await;
                    pause *= 2;
                }
                outcome => return outcome,
            }
        }
        self.send_once(&call, deadline, patience).await
    }

    async fn send_once(
        &self,
        call: &Call,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, DaemonError> {
        let (status, body) = self.exchange(call, deadline, patience).await?;
        judge(call.action, status, body)
    }

    /// One request and whatever comes back, unjudged.
    pub(crate) async fn probe(&self, call: &Call) -> Result<(StatusCode, Bytes), DaemonError> {
        let patience = self.patience.call + call.hold;
        self.exchange(call, Instant::now() + patience, patience).await
    }

    async fn exchange(
        &self,
        call: &Call,
        deadline: Instant,
        patience: Duration,
    ) -> Result<(StatusCode, Bytes), DaemonError> {
        let action = call.action;
        let late = |_| DaemonError::Deadline { action, url: self.base.clone(), after: patience };
        let request = self.request(call)?;
        let connections = self.connections.read().clone();
        let response = timeout_at(deadline, connections.request(request)).await.map_err(late)?;
        let response = response.map_err(|error| {
            let (url, why) = (self.base.clone(), why(&error));
            if error.is_connect() {
                DaemonError::Connect { action, url, why }
            } else {
                DaemonError::Exchange { action, url, why }
            }
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), REPLY_BYTES_MAX).collect();
        let body = timeout_at(deadline, body).await.map_err(late)?.map_err(|error| {
            if error.is::<LengthLimitError>() {
                DaemonError::Overflow { action, limit: REPLY_BYTES_MAX }
            } else {
                let why = why(error.as_ref());
                DaemonError::Exchange { action, url: self.base.clone(), why }
            }
        })?;
        Ok((status, body.to_bytes()))
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, DaemonError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.base, call.target))
            .header(header::ACCEPT, "application/json");
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in &call.headers {
            request = request.header(*name, HeaderValue::from_str(value).map_err(refused(call))?);
        }
        request.body(Full::new(Bytes::from(call.body.clone()))).map_err(refused(call))
    }
}

/// Text that cannot be sent would be refused by any daemon, so it counts as refused.
fn refused<E: fmt::Display>(call: &Call) -> impl Fn(E) -> DaemonError {
    let action = call.action;
    move |error| DaemonError::Refused {
        action,
        status: StatusCode::BAD_REQUEST.as_u16(),
        refusal: Refusal::new(RefusalReason::Malformed, error.to_string()),
    }
}

/// Tells success, refusal and failure apart.
fn judge(action: &'static str, status: StatusCode, body: Bytes) -> Result<Answer, DaemonError> {
    if status.is_success() {
        return Ok(Answer { action, status, body });
    }
    let is_refusal = status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE;
    // These come from proxies as well, and say nothing about the request.
    let is_passing = matches!(status.as_u16(), 408 | 425 | 429);
    if !is_refusal || is_passing {
        // A proxy's page is no reason; the daemon's own words are.
        let refusal = serde_json::from_slice::<Refusal>(&body);
        let mut why = refusal.map(|it| it.message).unwrap_or_default();
        why.truncate(why.floor_char_boundary(REASON_BYTES_MAX));
        return Err(DaemonError::Failed { action, status: status.as_u16(), why });
    }
    // Only a daemon says why. A 404 of a proxy must not pass for "no such allocation".
    let refusal = serde_json::from_slice(&body).unwrap_or_else(|_| {
        Refusal::new(RefusalReason::Unknown, "the answer gave no readable reason")
    });
    Err(DaemonError::Refused { action, status: status.as_u16(), refusal })
}

/// Whether the next try is harmless and can end otherwise. After a deadline it cannot: that covers
/// all tries.
fn may_repeat(call: &Call, error: &DaemonError) -> bool {
    match error {
        // Nothing was sent.
        DaemonError::Connect { .. } => true,
        DaemonError::Exchange { .. } | DaemonError::Failed { .. } => call.repeatable,
        _ => false,
    }
}

fn connections(
    patience: Patience,
    is_https: bool,
    identity: Option<&Identity>,
) -> Result<Connections, AddressError> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(patience.connect));
    let tls = tls::config(is_https, identity)?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    let connector = builder.https_or_http().enable_http1().wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .build(connector))
}

/// hyper hides the cause behind general words.
fn why(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(words) = complaint(error) {
        return words;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    #[error("{url:?} cannot be used: {why}")]
    Malformed { url: String, why: String },
    #[error("no certificates to check https with: {why}")]
    Certificates { why: String },
}
