//! Every route of the contract on one router.

mod admin;
mod allocations;
mod attestd;
mod corrd;
mod feed;
mod memqosd;
mod reply;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post, put};

use self::allocations::{allocate, list, release, renew_lease};
use self::reply::Refused;
use super::daemon::Daemon;
use super::faults::FaultKind;
use super::metrics;
use super::records::{BundleRecord, CorridorRecord};
use crate::refusal::{Refusal, RefusalReason};

/// The largest honest request carries a ticket and 416 wavelengths.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// What every route is given.
type Served = State<Arc<Daemon>>;

/// Marks a response that must never reach its reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoseReply;

pub(super) fn router(daemon: Arc<Daemon>) -> Router {
    let contract = Router::new()
        .route("/v1/corridors", post(allocate::<CorridorRecord>).get(list::<CorridorRecord>))
        .route(
            "/v1/corridors/{id}",
            get(allocations::get::<CorridorRecord>)
                .patch(corrd::update)
                .delete(release::<CorridorRecord>),
        )
        .route("/v1/corridors/{id}/lease", post(renew_lease::<CorridorRecord>))
        .route("/v1/corridors/{id}/telemetry", get(corrd::telemetry))
        .route("/v1/corridors/{id}/recalibrate", post(corrd::recalibrate))
        .route("/v1/ffm", get(list::<BundleRecord>))
        .route("/v1/ffm/alloc", post(allocate::<BundleRecord>))
        .route(
            "/v1/ffm/{handle}",
            get(allocations::get::<BundleRecord>).delete(release::<BundleRecord>),
        )
        .route("/v1/ffm/{handle}/bandwidth", patch(memqosd::set_bandwidth))
        .route("/v1/ffm/{handle}/latency_class", patch(memqosd::set_latency_class))
        .route("/v1/ffm/{handle}/lease", post(renew_lease::<BundleRecord>))
        .route("/v1/ffm/{handle}/telemetry", get(memqosd::telemetry))
        .route("/v1/telemetry", get(feed::telemetry))
        .route("/v1/devices", get(attestd::devices))
        .route("/v1/attest/verify", post(attestd::verify))
        .route_layer(from_fn_with_state(daemon.clone(), around));
    let mut router = contract.route("/metrics", get(render_metrics));
    if daemon.config.enable_admin {
        router = router
            .route("/admin/corridors/{id}", put(admin::force::<CorridorRecord>))
            .route("/admin/ffm/{handle}", put(admin::force::<BundleRecord>))
            .route("/admin/devices/{id}", put(admin::change_device))
            .route("/admin/faults", post(admin::order_fault).delete(admin::clear_faults))
            .route("/admin/restart", post(admin::restart));
    }
    router
        .fallback(no_route)
        .method_not_allowed_fallback(no_route)
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(daemon)
}

async fn no_route() -> Refused {
    Refused(Refusal::new(RefusalReason::NotFound, "there is no such route"))
}

async fn render_metrics(State(daemon): Served) -> String {
    daemon.render_metrics()
}

/// Counts every call, and lets the ordered faults strike.
async fn around(
    State(daemon): Served,
    route: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let method = request.method().clone();
    let route = route.as_str();
    let fault = daemon.faults.strike(method.as_str(), route);
    let response = match fault {
        None => next.run(request).await,
        Some((FaultKind::Slow, delay)) => {
            tokio::time::sleep(delay).await;
            next.run(request).await
        }
        Some((FaultKind::Http5xx, _)) => {
            let refusal = Refusal::new(RefusalReason::Unavailable, "ordered by a test");
            Refused(refusal).into_response()
        }
        Some((FaultKind::LostReply, _)) => {
            let mut response = next.run(request).await;
            response.extensions_mut().insert(LoseReply);
            response
        }
        Some((FaultKind::Garbage, _)) => {
            drop(next.run(request).await);
            (StatusCode::OK, "{\"achievable_gbps\": NaN, <html>").into_response()
        }
    };
    let role = metrics::Role::of_path(route);
    daemon.metrics.count_request(role, &format!("{method} {route}"), response.status().as_u16());
    if let Some(reason) = response.extensions().get::<RefusalReason>() {
        daemon.metrics.count_refusal(role, reason.as_str());
    }
    response
}
