//! The routes of corrd alone.

use axum::Json;
use axum::extract::{Path, State};

use super::Served;
use super::reply::{Body, Caller, Refused};
use crate::corrd::{
    Corridor, CorridorChange, CorridorTelemetry, RecalibrationRequest, RecalibrationResult,
};
use crate::simulated::ledger::Record as _;
use crate::simulated::photonics;

pub(super) async fn update(
    State(daemon): Served,
    Path(id): Path<String>,
    Caller(caller): Caller,
    Body(change): Body<CorridorChange>,
) -> Result<Json<Corridor>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, record) =
            ledger.plan_corridor_change(terms, &id, caller.as_ref(), &change)?;
        Ok((changes, record.shown(terms, now)))
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
        Ok((vec![], photonics::sample(terms.seed, ledger.find(&id)?, now)))
    });
    Ok(Json(plan.await?))
}
