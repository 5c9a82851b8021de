//! A proxy between the scheduler and one of its servers, so that a test sees and can stop every call.
//!
//! Towards the scheduler it speaks plain HTTP on loopback; towards the server it has the identity of the
//! given client: the API server sees the scheduler's own token. A [`Gate`] decides when a call is passed on
//! and when its answer is passed back, and may let either wait for ever. Watches pass through as they
//! come.

mod shape;

use std::convert::Infallible;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt as _};
use http::header::{ACCEPT, CONNECTION, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::error::{Doing as _, Error, Result};

pub use shape::{Fate, Form, Shaper};
use shape::{is_protobuf, shaped};

/// Calls that were passed on before a kill are answered within moments.
const QUIET_TIME_MAX: Duration = Duration::from_secs(30);
const QUIET_POLL_EVERY: Duration = Duration::from_millis(2);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ReplyBody = UnsyncBoxBody<Bytes, BoxError>;

/// Which server a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    ApiServer,
    Daemons,
}

/// One call of the scheduler.
#[derive(Debug)]
pub struct Call {
    pub server: Server,
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub received: Instant,
}

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    headers: HeaderMap,
    pub body: Bytes,
}

/// What the server makes of a call, once it is awaited.
pub type CarryOut = BoxFuture<'static, Result<Answer>>;

/// Stands in the way of calls and answers. Long polls are not brought before it.
pub trait Gate: Send + Sync {
    /// A watch may be answered at once, with a code and a body, …
    fn refuse_watch(&self, _call: &Call) -> Option<(StatusCode, Bytes)> {
        None
    }

    /// … or its events be changed on their way.
    fn shape_watch(self: Arc<Self>, _call: &Call) -> Option<Shaper> {
        None
    }

    /// Whether it can judge the answer only in JSON. Else it comes as the scheduler asks for it.
    fn needs_json(&self, _call: &Call) -> bool {
        false
    }

    /// The call is passed on when `carry_out` is awaited, and the answer passed back when this ends.
    fn pass(self: Arc<Self>, call: Arc<Call>, carry_out: CarryOut) -> CarryOut;

    /// The server has carried a call out. Called also when the scheduler died meanwhile and does not
    /// wait for the answer any more.
    fn carried_out(&self, _call: &Call, _answer: &Answer) {}
}

/// A running proxy. It ends with this, and so does everything that still waits in it.
pub struct Proxy {
    url: String,
    passage: Arc<Passage>,
    serving: JoinHandle<()>,
}

struct Passage {
    server: Server,
    upstream: Client,
    gate: Arc<dyn Gate>,
    /// Calls that the server has and has not answered.
    passing: AtomicUsize,
    /// How many schedulers have died.
    deaths: AtomicUsize,
}

impl Proxy {
    /// Passes calls on to `upstream`, which says where the server is and who we are there.
    pub async fn start(server: Server, upstream: Client, gate: Arc<dyn Gate>) -> Result<Self> {
        let doing = "listening for the scheduler's calls";
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.doing(doing)?;
        let url = format!("http://{}", listener.local_addr().doing(doing)?);
        let (passing, deaths) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let passage = Arc::new(Passage { server, upstream, gate, passing, deaths });
        let serving = tokio::spawn(serve(listener, Arc::clone(&passage)));
        Ok(Self { url, passage, serving })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// To be called when the scheduler is dead: nothing that it still had in its sockets is passed on
    /// any more. Returns when the server has answered every call that was passed on before.
    pub async fn bury(&self) -> Result<()> {
        self.passage.deaths.fetch_add(1, Ordering::SeqCst);
        let open = || self.passage.passing.load(Ordering::SeqCst);
        let waiting = async {
            while open() > 0 {
                sleep(QUIET_POLL_EVERY).await;
            }
        };
        timeout(QUIET_TIME_MAX, waiting).await.map_err(|_| Error::TimedOut {
            awaited: "the answers to calls of a killed scheduler".into(),
            seconds: QUIET_TIME_MAX.as_secs(),
            seen: format!("{} are still open", open()),
        })
    }

    /// A kubeconfig for clients of this proxy, in `folder`.
    pub fn write_kubeconfig(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join("proxied.kubeconfig");
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "e2e", "cluster": { "server": self.url } }],
            "users": [{ "name": "e2e", "user": {} }],
            "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "e2e" } }],
            "current-context": "e2e",
        });
        std::fs::write(&path, text.to_string()).doing(format!("writing {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Call {
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    pub fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    pub fn is_watch(&self) -> bool {
        self.server == Server::ApiServer && self.query().split('&').any(is_watch_parameter)
    }

    /// One that the server holds until something happens.
    pub fn is_long_poll(&self) -> bool {
        self.server == Server::Daemons && self.path() == "/v1/telemetry"
    }
}

fn is_watch_parameter(parameter: &str) -> bool {
    matches!(parameter, "watch" | "watch=true" | "watch=1")
}

/// Ends, and ends its connections with it, when it is dropped.
async fn serve(listener: TcpListener, passage: Arc<Passage>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, Arc::clone(&passage)));
                }
                // Out of descriptors, most likely: the next moment may bring one.
                Err(_) => sleep(QUIET_POLL_EVERY).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, passage: Arc<Passage>) {
    // Small answers must not wait for more to say: the proxy is there to measure, too.
    let _ = stream.set_nodelay(true);
    let deaths = passage.deaths.load(Ordering::SeqCst);
    let service = service_fn(move |request| {
        let passage = Arc::clone(&passage);
        async move {
            if passage.deaths.load(Ordering::SeqCst) > deaths {
                // From a dead scheduler. The end of its connection ends this.
                std::future::pending::<()>().await;
            }
            // An error ends the connection without an answer.
            passage.pass(request).await.ok_or(Error::ReplyLost)
        }
    });
    // An error means that the scheduler ended, or was ended: there is no client to report it to.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Passage {
    /// None: the connection is to be broken off.
    async fn pass(self: Arc<Self>, request: Request<Incoming>) -> Option<Response<ReplyBody>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.ok()?;
        let mut headers = head.headers;
        for of_one_connection in [HOST, CONNECTION, TRANSFER_ENCODING] {
            headers.remove(of_one_connection);
        }
        let mut call = Call {
            server: self.server,
            method: head.method,
            uri: head.uri,
            headers,
            body: body.to_bytes(),
            received: Instant::now(),
        };
        // The scheduler asks for protobuf and takes either.
        if call.headers.get(ACCEPT).is_some_and(is_protobuf) && self.gate.needs_json(&call) {
            call.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        let call = Arc::new(call);
        if call.is_watch() || call.is_long_poll() {
            return Some(self.pass_stream(&call).await);
        }
        let carry_out = Arc::clone(&self).carry_out(Arc::clone(&call)).boxed();
        match Arc::clone(&self.gate).pass(call, carry_out).await {
            Ok(answer) => Some(answer.into_response()),
            Err(Error::ReplyLost) => None,
            Err(problem) => Some(refusal(&problem.to_string())),
        }
    }

    async fn pass_stream(&self, call: &Call) -> Response<ReplyBody> {
        if let Some((status, body)) = self.gate.refuse_watch(call).filter(|_| call.is_watch()) {
            let mut response = Response::new(whole(body));
            *response.status_mut() = status;
            return response;
        }
        let reply = match self.send(call).await {
            Ok(reply) => reply,
            Err(problem) => return refusal(&problem.to_string()),
        };
        match Arc::clone(&self.gate).shape_watch(call).filter(|_| call.is_watch()) {
            Some(shaper) => {
                let form = Form::of(reply.headers());
                reply.map(|body| shaped(body, form, shaper))
            }
            None => reply.map(|body| body.map_err(Into::into).boxed_unsync()),
        }
    }

    /// In a task of its own: what the server was asked is carried out, also when the scheduler dies
    /// in the meantime.
    async fn carry_out(self: Arc<Self>, call: Arc<Call>) -> Result<Answer> {
        self.passing.fetch_add(1, Ordering::SeqCst);
        let carried_out = tokio::spawn(async move {
            let answer = async {
                let (head, body) = self.send(&call).await.doing("passing a call on")?.into_parts();
                let body = body.collect_bytes().await.doing("reading an answer")?;
                Ok(Answer { status: head.status, headers: head.headers, body })
            };
            let answer = answer.await;
            if let Ok(answer) = &answer {
                self.gate.carried_out(&call, answer);
            }
            self.passing.fetch_sub(1, Ordering::SeqCst);
            answer
        });
        carried_out.await.map_err(|problem| Error::malformed("passing a call on", problem))?
    }

    async fn send(&self, call: &Call) -> kube::Result<Response<Body>> {
        let mut request = Request::new(Body::from(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        self.upstream.send(request).await
    }
}

impl Answer {
    /// One of the API server's that says no more than its code.
    pub fn status(code: u16) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "message": "by the proxy of the test", "details": { "retryAfterSeconds": 1 },
        });
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, headers, body: body.to_string().into() }
    }

    fn into_response(self) -> Response<ReplyBody> {
        let mut response = Response::new(whole(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        // The body is whole now, whatever it came in.
        response.headers_mut().remove(TRANSFER_ENCODING);
        response
    }
}

/// The server could not be asked.
fn refusal(problem: &str) -> Response<ReplyBody> {
    let mut response =
        Response::new(whole(Bytes::from(format!("the proxy of the test: {problem}"))));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

fn whole(bytes: Bytes) -> ReplyBody {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}
