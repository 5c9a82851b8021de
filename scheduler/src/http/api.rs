//! `/api`: read only, JSON.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, extract::DefaultBodyLimit};
use driver::QuestionError;
use serde_json::{Value, json};

use super::Status;

/// A Pod object is at most 1.5 MiB in etcd.
const POD_BYTES_MAX: usize = 2 << 20;

pub(super) fn routes() -> Router<Status> {
    Router::new()
        .route("/api/pods/{namespace}/{name}/explain", get(explain))
        .route("/api/pods/{namespace}/{name}/when", get(when))
        .route("/api/what-if", post(what_if))
        .layer(DefaultBodyLimit::max(POD_BYTES_MAX))
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
