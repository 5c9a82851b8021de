//! `/api`: read only, JSON.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::Failure;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use driver::{JournalError, QuestionError};
use parking_lot::Mutex;
use serde::Serialize;

use super::Status;
use super::fair_pace::{FairPace, Requester};
use super::pace::Pace;

/// A Pod object is at most 1.5 MiB in etcd.
const POD_BYTES_MAX: usize = 2 << 20;

/// Until a twin is built, and where none can be, questions take their turn in the loop that binds Pods. A survey of
/// 5,000 Nodes takes some milliseconds, so what all of them may cost together stays far below a second in each second. A person
/// with a console, or a script over a namespace, stays below it too. Users share each pace.
const EXPLAIN_PACE: Pace = Pace { per_second: 50, burst: 100 };
/// About one Pod as well, so the same.
const WHEN_PACE: Pace = Pace { per_second: 50, burst: 100 };
/// A body of up to 2 MiB has to be read, and every Node is looked at, whatever the Pod asks for.
const WHAT_IF_PACE: Pace = Pace { per_second: 10, burst: 20 };
/// Up to a thousand disagreements are written out.
const SHADOW_PACE: Pace = Pace { per_second: 10, burst: 20 };
/// Some megabytes, and each reading ends a batch before it is full, which makes the journal longer.
const JOURNAL_PACE: Pace = Pace { per_second: 1, burst: 2 };
/// What a full queue of questions needs to be answered, rounded up to what the header can say.
const BUSY_FOR: Duration = Duration::from_secs(1);

pub(super) fn routes(status: Status) -> Router<Status> {
    Router::new()
        .route("/api/pods/{namespace}/{name}/explain", at_most(EXPLAIN_PACE, get(explain)))
        .route("/api/pods/{namespace}/{name}/when", at_most(WHEN_PACE, get(when)))
        .route("/api/what-if", at_most(WHAT_IF_PACE, post(what_if)))
        .route("/api/shadow", at_most(SHADOW_PACE, get(shadow)))
        .route("/api/journal", at_most(JOURNAL_PACE, get(journal)))
        .layer(DefaultBodyLimit::max(POD_BYTES_MAX))
        .layer(middleware::from_fn_with_state(status, only_the_leader))
        // The same on every replica.
        .route("/api/openapi.json", get(openapi))
}

/// A replica that follows sees the cluster and decides nothing: it cannot explain why a Pod waits.
async fn only_the_leader(State(status): State<Status>, request: Request, next: Next) -> Response {
    let Some(leader) = status.tenure.leader_elsewhere() else { return next.run(request).await };
    let error = match &leader {
        Some(leader) => format!("this replica follows; ask the leader, {leader}"),
        None => "no replica is known to lead; ask again in a moment".to_owned(),
    };
    let failure = Failure { error, leader: leader.as_deref().map(ToOwned::to_owned) };
    (StatusCode::SERVICE_UNAVAILABLE, Json(failure)).into_response()
}

/// What `/api` takes and answers, for programs.
async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], api::OPENAPI_JSON)
}

pub(super) fn failure(code: StatusCode, error: impl Into<String>) -> Response {
    (code, Json(Failure { error: error.into(), leader: None })).into_response()
}

/// One pace for plain HTTP and HTTPS together, because what is guarded is the loop; and shared fairly among
/// users, because one user's script must not silence the others.
fn at_most(pace: Pace, route: MethodRouter<Status>) -> MethodRouter<Status> {
    let pace = Arc::new(Mutex::new(FairPace::new(pace)));
    // Before the body is read.
    route.route_layer(middleware::from_fn_with_state(pace, keep_pace))
}

async fn keep_pace(
    State(pace): State<Arc<Mutex<FairPace>>>,
    request: Request,
    next: Next,
) -> Response {
    let requester = request.extensions().get().unwrap_or(&Requester::Loopback);
    let taken = pace.lock().take(requester, Instant::now());
    match taken {
        Ok(()) => next.run(request).await,
        Err(wait) => later(wait, "you ask more questions of this kind than your share of the pace"),
    }
}

/// Too many: 429, and when to come back.
fn later(wait: Duration, why: &str) -> Response {
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let error = format!("{why}; ask again in {seconds} s");
    let headers = [(header::RETRY_AFTER, seconds.to_string())];
    (headers, failure(StatusCode::TOO_MANY_REQUESTS, error)).into_response()
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

/// Not a question to the loop: it is answered from the book.
async fn shadow(State(status): State<Status>) -> Response {
    if let Some(book) = &status.shadow {
        return Json(book.lock().report()).into_response();
    }
    failure(StatusCode::NOT_FOUND, "nothing is compared here; start with --shadow SCHEDULER_NAME")
}

async fn what_if(State(status): State<Status>, pod: Result<Bytes, BytesRejection>) -> Response {
    match pod {
        Ok(pod) => answer(status.questions.what_if(&pod).await),
        // Too large, or broken off.
        Err(why) => failure(why.status(), why.body_text()),
    }
}

/// The events and decisions of the engine: gzip, JSON lines. It is sent as it is kept, in parts that
/// are shared: a slow reader takes no memory.
async fn journal(State(status): State<Status>) -> Response {
    let parts = match status.journal.read().await {
        Ok(parts) => parts,
        Err(JournalError::Busy) => return later(BUSY_FOR, "too many ask for the journal"),
        Err(error @ (JournalError::NotBegun | JournalError::Stopped)) => {
            return failure(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "application/gzip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"journal.jsonl.gz\""),
    ];
    let parts = parts.into_iter().map(|part| Ok::<_, Infallible>(Bytes::from_owner(part)));
    (headers, Body::from_stream(futures::stream::iter(parts))).into_response()
}

fn answer(outcome: Result<impl Serialize, QuestionError>) -> Response {
    let error = match outcome {
        Ok(answer) => return Json(answer).into_response(),
        Err(error) => error,
    };
    let code = match &error {
        QuestionError::NotFound(_) => StatusCode::NOT_FOUND,
        QuestionError::Busy => return later(BUSY_FOR, "too many questions are waiting"),
        QuestionError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        QuestionError::BadPod(_) => StatusCode::BAD_REQUEST,
        QuestionError::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    };
    failure(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The router's source is the list of what is served; the OpenAPI document has the same, but for itself.
    #[test]
    fn routes_are_those_of_the_openapi_document() {
        let source = include_str!("api.rs");
        let served: BTreeSet<String> = source
            .split(".route(\"")
            .skip(1)
            .filter_map(|piece| {
                let (path, rest) = piece.split_once('"')?;
                let method =
                    if rest.split(".route(").next()?.contains("post(") { "post" } else { "get" };
                path.starts_with("/api/").then(|| format!("{method} {path}"))
            })
            .filter(|it| it != "get /api/openapi.json")
            .collect();
        let described: BTreeSet<String> =
            api::ROUTES.iter().map(|it| format!("{} {}", it.method, it.path)).collect();
        assert_eq!(served, described);
    }
}
