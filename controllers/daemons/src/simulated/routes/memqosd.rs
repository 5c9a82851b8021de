//! The routes of memqosd alone.

use axum::Json;
use axum::extract::{Path, State};

use super::Served;
use super::reply::{Body, Caller, Refused};
use crate::memqosd::{
    BandwidthChange, Bundle, BundleTelemetry, LatencyClassChange, LatencyClassChanged,
};
use crate::simulated::ledger::Record as _;
use crate::simulated::memory;

pub(super) async fn set_bandwidth(
    State(daemon): Served,
    Path(handle): Path<String>,
    Caller(caller): Caller,
    Body(change): Body<BandwidthChange>,
) -> Result<Json<Bundle>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, record) = ledger.plan_bandwidth(terms, &handle, caller.as_ref(), change)?;
        Ok((changes, record.shown(terms, now)))
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
        Ok((vec![], memory::sample(terms.seed, ledger.find(&handle)?, violations, now)))
    });
    Ok(Json(plan.await?))
}
