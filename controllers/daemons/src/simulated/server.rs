//! Accepts connections and serves the router. Done by hand because a reply must be able to get
//! lost: axum's own server always answers.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::routes::LoseReply;

/// Who has not sent a whole request head by then is not going to.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests under way get this long to end when the daemons stop.
const STOP_GRACE: Duration = Duration::from_millis(500);
/// After a failed accept (no file descriptors) others get a chance to close theirs.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
#[error("the reply is lost on purpose")]
struct ReplyLost;

pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without this the kernel may hold back small replies for 40 ms.
        drop(stream.set_nodelay(true));
        let service = TowerToHyperService::new(router.clone());
        let service = service_fn(move |request: http::Request<Incoming>| {
            let service = service.clone();
            async move {
                use hyper::service::Service;
                let response: http::Response<Body> =
                    service.call(request).await.map_err(|never| match never {})?;
                match response.extensions().get::<LoseReply>() {
                    // An error makes hyper close the connection without a word.
                    Some(_) => Err(ReplyLost),
                    None => Ok(response),
                }
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        let mut stopped = stopped.clone();
        tokio::spawn(async move {
            let cut = async {
                let _ = stopped.wait_for(|stopped| *stopped).await;
                tokio::time::sleep(STOP_GRACE).await;
            };
            // How a connection ends is the client's affair.
            tokio::select! { _ = connection => {}, () = cut => {} }
        });
    }
    drop(listener);
    drop(tokio::time::timeout(STOP_GRACE * 2, connections.shutdown()).await);
}
