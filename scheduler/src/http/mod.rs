//! What the process serves over HTTP.

mod access;
mod api;
mod certificates;
mod fair_pace;
mod https;
mod origin;
mod pace;
mod reviews;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use driver::{Health, Journal, Metrics, Questions, ShadowBook, Tenure};
use parking_lot::Mutex;
use prometheus::{Encoder, TextEncoder};
use tokio::net::TcpListener;

pub use self::https::{HttpsError, serve as serve_https};

#[derive(Clone, Debug)]
pub struct Status {
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    /// The series of Corridors and MemoryBundles.
    pub controllers: Arc<controllers::Metrics>,
    pub questions: Questions,
    pub journal: Journal,
    pub tenure: Tenure,
    /// What is compared with another scheduler, in shadow mode.
    pub shadow: Option<Arc<Mutex<ShadowBook>>>,
}

/// Everything that is served, plain and over TLS.
pub fn routes(status: Status) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/livez", get(alive))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .merge(api::routes(status.clone()))
        .with_state(status)
}

/// Serves in plain text until the process ends, to this machine alone. Returns the address, which a port of 0
/// leaves to the system.
pub async fn serve(address: SocketAddr, routes: Router) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let routes = routes.layer(middleware::from_fn(origin::guard));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%error, "the HTTP server ended");
        }
    });
    Ok(address)
}

/// Fails when only a new start helps: the kubelet then starts the container again.
async fn alive(State(status): State<Status>) -> Response {
    match status.health.failure() {
        None => "ok\n".into_response(),
        Some(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response(),
    }
}

async fn readyz(State(status): State<Status>) -> Response {
    let (ready, report) = (status.health.is_ready(), status.health.report());
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, report).into_response()
}

async fn metrics(State(status): State<Status>) -> Response {
    let mut text = Vec::new();
    let mut families = status.metrics.registry.gather();
    families.extend(status.controllers.gather());
    match TextEncoder::new().encode(&families, &mut text) {
        Ok(()) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
            .into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
