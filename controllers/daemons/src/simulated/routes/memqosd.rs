//! memqosd over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;

use super::corrd::ListQuery;
use super::reply::{Body, Caller, Key, Refused};
use crate::corrd::Lease;
use crate::memqosd::{
    BandwidthChange, Bundle, BundleList, BundleRequest, BundleTelemetry, LatencyClassChange,
    LatencyClassChanged,
};
use crate::simulated::daemon::Daemon;
use crate::simulated::ledger::{Allocated, shown_bundle};
use crate::simulated::memory;

type Served = State<Arc<Daemon>>;

pub(super) async fn allocate(
    State(daemon): Served,
    Key(key): Key,
    Body(ask): Body<BundleRequest>,
) -> Result<(StatusCode, Json<Bundle>), Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, allocated) = ledger.plan_bundle(terms, now, &key, &ask)?;
        let (status, record) = match allocated {
            Allocated::Now(record) => (StatusCode::CREATED, record),
            Allocated::Before(record) => (StatusCode::OK, record),
        };
        Ok((changes, (status, shown_bundle(record, terms, now))))
    });
    let (status, bundle) = plan.await?;
    Ok((status, Json(bundle)))
}

pub(super) async fn list(
    State(daemon): Served,
    Query(query): Query<ListQuery>,
) -> Result<Json<BundleList>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let records = ledger.bundles_of(&query.owner_prefix).into_iter();
        let bundles = records.map(|record| shown_bundle(record, terms, now)).collect();
        Ok((vec![], BundleList { bundles }))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn get(
    State(daemon): Served,
    Path(handle): Path<String>,
) -> Result<Json<Bundle>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        Ok((vec![], shown_bundle(ledger.bundle(&handle)?.clone(), terms, now)))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn release(
    State(daemon): Served,
    Path(handle): Path<String>,
    caller: Caller,
) -> Result<StatusCode, Refused> {
    let owner = caller.required()?;
    daemon.transact(move |ledger, _, _| ledger.plan_bundle_release(&handle, &owner)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn renew_lease(
    State(daemon): Served,
    Path(handle): Path<String>,
    Caller(caller): Caller,
) -> Result<Json<Lease>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        ledger.plan_bundle_lease(terms, now, &handle, caller.as_ref())
    });
    Ok(Json(plan.await?))
}

pub(super) async fn set_bandwidth(
    State(daemon): Served,
    Path(handle): Path<String>,
    Caller(caller): Caller,
    Body(change): Body<BandwidthChange>,
) -> Result<Json<Bundle>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, record) = ledger.plan_bandwidth(terms, &handle, caller.as_ref(), change)?;
        Ok((changes, shown_bundle(record, terms, now)))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn set_latency_class(
    State(daemon): Served,
    Path(handle): Path<String>,
    Caller(caller): Caller,
    Body(change): Body<LatencyClassChange>,
) -> Result<Json<LatencyClassChanged>, Refused> {
    let plan = daemon.transact(move |ledger, terms, _| {
        ledger.plan_latency_class(terms, &handle, caller.as_ref(), change)
    });
    Ok(Json(plan.await?))
}

pub(super) async fn telemetry(
    State(daemon): Served,
    Path(handle): Path<String>,
) -> Result<Json<BundleTelemetry>, Refused> {
    let violations = daemon.violations(&handle);
    let plan = daemon.transact(move |ledger, terms, now| {
        Ok((vec![], memory::sample(terms.seed, ledger.bundle(&handle)?, violations, now)))
    });
    Ok(Json(plan.await?))
}
