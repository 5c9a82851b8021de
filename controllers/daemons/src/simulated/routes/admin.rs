//! What tests may do to the daemons.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::Served;
use super::reply::{Body, Refused, malformed};
use crate::attestd::Device;
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::faults::FaultOrder;
use crate::simulated::ledger::{DeviceChange, Record};

pub(super) async fn force<R: Record>(
    State(daemon): Served,
    Path(id): Path<String>,
    Body(forced): Body<R::Forced>,
) -> Result<StatusCode, Refused> {
    daemon.transact(move |ledger, _, _| ledger.plan_forced::<R>(&id, forced)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn change_device(
    State(daemon): Served,
    Path(id): Path<String>,
    Body(change): Body<DeviceChange>,
) -> Result<Json<Device>, Refused> {
    let plan = daemon.transact(move |ledger, _, _| ledger.plan_device_change(&id, change));
    Ok(Json(plan.await?))
}

pub(super) async fn order_fault(
    State(daemon): Served,
    Body(order): Body<FaultOrder>,
) -> Result<StatusCode, Refused> {
    if daemon.faults.order(order) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(malformed("too many faults are ordered already"))
    }
}

pub(super) async fn clear_faults(State(daemon): Served) -> StatusCode {
    daemon.faults.clear();
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RestartOrder {
    keep_state: bool,
}

pub(super) async fn restart(
    State(daemon): Served,
    Body(RestartOrder { keep_state }): Body<RestartOrder>,
) -> Result<StatusCode, Refused> {
    let restarted = tokio::task::spawn_blocking(move || daemon.restart(keep_state)).await;
    let why = match restarted {
        Ok(Ok(())) => return Ok(StatusCode::NO_CONTENT),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Refused(Refusal::new(RefusalReason::Unavailable, why)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::simulated::records::{ForcedBundle, ForcedCorridor};

    /// Each property of a schema can be read alone beside the required ones, and no other can.
    fn compare<T: DeserializeOwned>(schema: &str, required: &Value, examples: &Value) {
        let file: Value = serde_saphyr::from_str(include_str!("../../../openapi.yaml")).unwrap();
        let described = &file["components"]["schemas"][schema]["properties"];
        let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(described), names(examples), "{schema}");
        for (name, example) in examples.as_object().unwrap() {
            let mut body = required.clone();
            body[name] = example.clone();
            assert!(serde_json::from_value::<T>(body).is_ok(), "{schema}: {name}");
        }
        let mut body = required.clone();
        body["something_else"] = json!(1);
        assert!(serde_json::from_value::<T>(body).is_err(), "{schema}");
    }

    #[test]
    fn bodies_are_as_described() {
        let corridor = json!({"achievable_gbps": 40, "latency_ns": 9, "ber_drift_decades": 2, "recalibration_fails": true});
        compare::<ForcedCorridor>("ForcedCorridor", &json!({}), &corridor);
        let bundle = json!({"achieved_GBs": 4, "tail_p99_ms": 1});
        compare::<ForcedBundle>("ForcedBundle", &json!({}), &bundle);
        let device = json!({"labels": {}, "firmware": "2", "claims": {}, "pqc": true});
        compare::<DeviceChange>("DeviceChange", &json!({}), &device);
        let fault = json!({"kind": "slow", "route": "*", "count": 2, "delay_ms": 5});
        compare::<FaultOrder>("FaultOrder", &json!({"kind": "garbage", "route": "*"}), &fault);
        let restart = json!({"keep_state": true});
        compare::<RestartOrder>("RestartOrder", &restart, &restart);
    }
}
