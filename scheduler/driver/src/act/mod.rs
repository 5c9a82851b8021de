//! What the engine decided, done: one file per kind of call.

mod bind;
mod condition;
mod event;
mod evict;
mod object_use;
mod prepare;
mod settle;

pub(crate) use bind::{BindReport, bind};
pub(crate) use condition::write_condition;
pub use event::Notice;
pub(crate) use event::{
    EventBody, failed_scheduling, preempted, scheduled, tampered, without_effect, write_event,
};
pub(crate) use evict::{EvictOutcome, EvictReport, evict};
pub(crate) use object_use::{
    Condition, conditions, is_newly_oversubscribed, oversubscribed, write_use,
};
pub(crate) use prepare::{PrepareReport, WrittenObject, prepare};

use std::time::Duration;

use http::{Method, Request, header};

/// Longer than the fence lets the API server work on a write, so that its answer is the one that counts.
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

fn request(
    method: Method,
    path: &str,
    content_type: &str,
    body: &serde_json::Value,
) -> Result<Request<Vec<u8>>, http::Error> {
    request_with(method, path, content_type, body.to_string().into_bytes())
}

/// The same with a body that is written already.
fn request_with(
    method: Method,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, http::Error> {
    let call = Request::builder().method(method).uri(path);
    call.header(header::CONTENT_TYPE, content_type).body(body)
}

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";
