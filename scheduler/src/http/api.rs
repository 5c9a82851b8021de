//! `/api`: read only, JSON.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, extract::DefaultBodyLimit};
use driver::QuestionError;
use serde_json::{Value, json};

use super::Status;

/// A Pod object is at most 1.5 MiB in etcd.
const POD_BYTES_MAX: usize = 2 << 20;

pub(super) fn routes(status: Status) -> Router<Status> {
    Router::new()
        .route("/api/pods/{namespace}/{name}/explain", get(explain))
        .route("/api/pods/{namespace}/{name}/when", get(when))
        .route("/api/what-if", post(what_if))
        .layer(DefaultBodyLimit::max(POD_BYTES_MAX))
        .layer(middleware::from_fn_with_state(status, only_the_leader))
}

/// A replica that follows sees the cluster and decides nothing: it cannot say why somebody waits.
async fn only_the_leader(State(status): State<Status>, request: Request, next: Next) -> Response {
    let Some(leader) = status.tenure.leader_elsewhere() else { return next.run(request).await };
    let error = match &leader {
        Some(leader) => format!("this replica follows; ask the leader, {leader}"),
        None => "no replica is known to lead; ask again in a moment".to_owned(),
    };
    let answer = json!({ "error": error, "leader": leader.as_deref() });
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
}

async fn explain(
    State(status): State<Status>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    answer(status.questions.explain(&namespace, &name).await)
}

async fn when(
    State(status): State<Status>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    answer(status.questions.when(&namespace, &name).await)
}

async fn what_if(State(status): State<Status>, pod: Bytes) -> Response {
    answer(status.questions.what_if(&pod).await)
}

fn answer(outcome: Result<Value, QuestionError>) -> Response {
    let error = match outcome {
        Ok(answer) => return Json(answer).into_response(),
        Err(error) => error,
    };
    let code = match &error {
        QuestionError::NotFound(_) => StatusCode::NOT_FOUND,
        QuestionError::Busy => StatusCode::TOO_MANY_REQUESTS,
        QuestionError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        QuestionError::BadPod(_) => StatusCode::BAD_REQUEST,
    };
    (code, Json(json!({ "error": error.to_string() }))).into_response()
}
