//! What the process tells about itself over HTTP.

mod api;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use driver::{Health, Metrics, Questions, Tenure};
use prometheus::{Encoder, TextEncoder};
use tokio::net::TcpListener;

#[derive(Clone, Debug)]
pub struct Status {
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    /// The series of Corridors and MemoryBundles.
    pub controllers: Arc<controllers::Metrics>,
    pub questions: Questions,
    pub tenure: Tenure,
}

/// Serves until the process ends. Returns the address, which a port of 0 leaves to the system.
pub async fn serve(address: SocketAddr, status: Status) -> std::io::Result<SocketAddr> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .merge(api::routes(status.clone()))
        .with_state(status);
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the HTTP server ended");
        }
    });
    Ok(address)
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
