//! attestd over HTTP.

use axum::Json;
use axum::extract::State;

use super::Served;
use super::reply::{Body, Refused};
use crate::attestd::{DeviceList, Verified, VerifyRequest};

pub(super) async fn devices(State(daemon): Served) -> Result<Json<DeviceList>, Refused> {
    let plan = daemon.transact(|ledger, _, _| {
        Ok((vec![], DeviceList { devices: ledger.devices.values().cloned().collect() }))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn verify(
    State(daemon): Served,
    Body(ask): Body<VerifyRequest>,
) -> Result<Json<Verified>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| ledger.plan_verify(terms, now, &ask));
    Ok(Json(plan.await??))
}
