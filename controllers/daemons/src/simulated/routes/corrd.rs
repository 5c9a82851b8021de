//! corrd over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::reply::{Body, Caller, Key, Refused};
use crate::corrd::{
    Corridor, CorridorChange, CorridorList, CorridorRequest, CorridorTelemetry, Lease,
    RecalibrationRequest, RecalibrationResult,
};
use crate::simulated::daemon::Daemon;
use crate::simulated::ledger::{Allocated, shown_corridor};
use crate::simulated::photonics;

type Served = State<Arc<Daemon>>;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    pub owner_prefix: String,
}

pub(super) async fn allocate(
    State(daemon): Served,
    Key(key): Key,
    Body(ask): Body<CorridorRequest>,
) -> Result<(StatusCode, Json<Corridor>), Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, allocated) = ledger.plan_corridor(terms, now, &key, &ask)?;
        let (status, record) = match allocated {
            Allocated::Now(record) => (StatusCode::CREATED, record),
            Allocated::Before(record) => (StatusCode::OK, record),
        };
        Ok((changes, (status, shown_corridor(record, terms, now))))
    });
    let (status, corridor) = plan.await?;
    Ok((status, Json(corridor)))
}

pub(super) async fn list(
    State(daemon): Served,
    Query(query): Query<ListQuery>,
) -> Result<Json<CorridorList>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let records = ledger.corridors_of(&query.owner_prefix).into_iter();
        let corridors = records.map(|record| shown_corridor(record, terms, now)).collect();
        Ok((vec![], CorridorList { corridors }))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn get(
    State(daemon): Served,
    Path(id): Path<String>,
) -> Result<Json<Corridor>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        Ok((vec![], shown_corridor(ledger.corridor(&id)?.clone(), terms, now)))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn release(
    State(daemon): Served,
    Path(id): Path<String>,
    caller: Caller,
) -> Result<StatusCode, Refused> {
    let owner = caller.required()?;
    daemon.transact(move |ledger, _, _| ledger.plan_corridor_release(&id, &owner)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn renew_lease(
    State(daemon): Served,
    Path(id): Path<String>,
    Caller(caller): Caller,
) -> Result<Json<Lease>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        ledger.plan_corridor_lease(terms, now, &id, caller.as_ref())
    });
    Ok(Json(plan.await?))
}

pub(super) async fn update(
    State(daemon): Served,
    Path(id): Path<String>,
    Caller(caller): Caller,
    Body(change): Body<CorridorChange>,
) -> Result<Json<Corridor>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, record) =
            ledger.plan_corridor_change(terms, &id, caller.as_ref(), &change)?;
        Ok((changes, shown_corridor(record, terms, now)))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn recalibrate(
    State(daemon): Served,
    Path(id): Path<String>,
    Caller(caller): Caller,
    Body(ask): Body<RecalibrationRequest>,
) -> Result<Json<RecalibrationResult>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        ledger.plan_recalibration(terms, now, &id, caller.as_ref(), &ask)
    });
    Ok(Json(plan.await?))
}

pub(super) async fn telemetry(
    State(daemon): Served,
    Path(id): Path<String>,
) -> Result<Json<CorridorTelemetry>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        Ok((vec![], photonics::sample(terms.seed, ledger.corridor(&id)?, now)))
    });
    Ok(Json(plan.await?))
}
