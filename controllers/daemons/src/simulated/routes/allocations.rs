//! The routes that corrd and memqosd have in common.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::Served;
use super::reply::{Body, Caller, Key, Refused};
use crate::corrd::Lease;
use crate::simulated::ledger::{Allocated, Record};

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    owner_prefix: String,
}

pub(super) async fn allocate<R: Record>(
    State(daemon): Served,
    Key(key): Key,
    Body(ask): Body<R::Request>,
) -> Result<(StatusCode, Json<R::Shown>), Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let (changes, allocated) = R::plan(ledger, terms, now, &key, &ask)?;
        let (status, record) = match allocated {
            Allocated::Now(record) => (StatusCode::CREATED, record),
            Allocated::Before(record) => (StatusCode::OK, record),
        };
        Ok((changes, (status, record.shown(terms, now))))
    });
    let (status, shown) = plan.await?;
    Ok((status, Json(shown)))
}

pub(super) async fn list<R: Record>(
    State(daemon): Served,
    Query(query): Query<ListQuery>,
) -> Result<Json<BTreeMap<&'static str, Vec<R::Shown>>>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        let records = ledger.find_by_owner::<R>(&query.owner_prefix).into_iter();
        Ok((vec![], records.map(|record| record.shown(terms, now)).collect()))
    });
    Ok(Json(BTreeMap::from([(R::LIST, plan.await?)])))
}

pub(super) async fn get<R: Record>(
    State(daemon): Served,
    Path(id): Path<String>,
) -> Result<Json<R::Shown>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        Ok((vec![], ledger.find::<R>(&id)?.clone().shown(terms, now)))
    });
    Ok(Json(plan.await?))
}

pub(super) async fn release<R: Record>(
    State(daemon): Served,
    Path(id): Path<String>,
    caller: Caller,
) -> Result<StatusCode, Refused> {
    let owner = caller.required()?;
    daemon.transact(move |ledger, _, _| ledger.plan_release::<R>(&id, &owner)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn renew_lease<R: Record>(
    State(daemon): Served,
    Path(id): Path<String>,
    Caller(caller): Caller,
) -> Result<Json<Lease>, Refused> {
    let plan = daemon.transact(move |ledger, terms, now| {
        ledger.plan_lease::<R>(terms, now, &id, caller.as_ref())
    });
    Ok(Json(plan.await?))
}
