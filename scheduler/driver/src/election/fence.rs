//! No write leaves this process without a term that holds, and none outlives it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Uri};
use tower::{BoxError, Layer, Service};

use super::tenure::Tenure;

/// A layer of the Kubernetes client through which everything is written.
///
/// Reads pass. A write is refused here while another replica leads; it is given up when the term ends,
/// and tells the API server to do the same before another replica can lead.
#[derive(Clone, Debug)]
pub struct Fence {
    tenure: Tenure,
    write_timeout: Duration,
}

impl Fence {
    pub fn new(tenure: Tenure, write_timeout: Duration) -> Self {
        Self { tenure, write_timeout }
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, fence: self.clone() }
    }
}

#[derive(Clone, Debug)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

/// Why a write was not sent, or not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this replica does not lead any more")]
pub struct NotLeading;

/// Whether a call failed only because another replica leads now.
pub(crate) fn is_not_leading(error: &kube::Error) -> bool {
    match error {
        kube::Error::Service(cause) => cause.is::<NotLeading>(),
        _ => false,
    }
}

impl<S, B, R> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>, Response = R>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    R: 'static,
{
    type Response = R;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            let reply = self.inner.call(request);
            return Box::pin(async move { reply.await.map_err(Into::into) });
        }
        let Some(term) = self.fence.tenure.term() else {
            return Box::pin(async { Err(NotLeading.into()) });
        };
        if let Some(bounded) = with_timeout(request.uri(), self.fence.write_timeout) {
            *request.uri_mut() = bounded;
        }
        let (reply, tenure) = (self.inner.call(request), self.fence.tenure.clone());
        Box::pin(async move {
            tokio::select! {
                biased;
                reply = reply => reply.map_err(Into::into),
                () = tenure.ended(&term) => Err(NotLeading.into()),
            }
        })
    }
}

/// The same address with a time-out for the API server. None if it cannot be made, which no address
/// of ours leads to: the call itself then has the bounds that every call has.
fn with_timeout(uri: &Uri, timeout: Duration) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let path = uri.path();
    let timeout = format!("timeout={}ms", timeout.as_millis());
    let query = uri.query().filter(|query| !query.is_empty());
    let path_and_query = match query {
        Some(query) => format!("{path}?{query}&{timeout}"),
        None => format!("{path}?{timeout}"),
    };
    parts.path_and_query = Some(path_and_query.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tenure::{LeadershipState, Term};
    use super::*;
    use model::Instant;
    use tower::ServiceExt as _;

    const TIMEOUT: Duration = Duration::from_secs(4);

    fn led_until(seconds: u64) -> Tenure {
        let tenure = Tenure::following();
        let until = Some(Instant::from_start(Duration::from_secs(seconds)));
        let name = Some("a/1".into());
        tenure.publish(LeadershipState::Leading(Term { name, began: Instant::START, until }));
        tenure
    }

    async fn send(tenure: &Tenure, method: Method, takes_s: u64) -> Result<String, BoxError> {
        let server = tower::service_fn(move |request: Request<()>| async move {
            tokio::time::sleep(Duration::from_secs(takes_s)).await;
            Ok::<_, BoxError>(request.uri().to_string())
        });
        let fenced = Fence::new(tenure.clone(), TIMEOUT).layer(server);
        let request = Request::builder().method(method).uri("http://api/pods?force=true").body(());
        fenced.oneshot(request.unwrap()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_carries_a_time_out_and_a_read_passes_always() {
        let written = send(&led_until(10), Method::PATCH, 1).await.unwrap();
        assert_eq!(written, "http://api/pods?force=true&timeout=4000ms");
        let read = send(&Tenure::following(), Method::GET, 1).await.unwrap();
        assert_eq!(read, "http://api/pods?force=true");
    }

    #[tokio::test(start_paused = true)]
    async fn no_write_without_a_term_and_none_beyond_it() {
        for (tenure, takes_s) in [(Tenure::following(), 0), (led_until(10), 11)] {
            let refused = send(&tenure, Method::POST, takes_s).await.unwrap_err();
            assert!(is_not_leading(&kube::Error::Service(refused)));
            assert!(tenure.clock().now() <= Instant::from_start(Duration::from_secs(10)));
        }
    }
}
