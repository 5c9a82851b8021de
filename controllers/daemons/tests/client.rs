//! The client against daemons that misbehave.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use daemons::attestd::{Attestd, VerifyRequest};
use daemons::client::{Endpoint, Patience};
use daemons::corrd::{Corrd, CorridorRequest, PathSpec, RecalibrationRequest};
use daemons::memqosd::Memqosd;
use daemons::{DaemonError, Owner, RefusalReason, Released};

/// A daemon with one answer for everything, and how often it was asked.
struct Stub {
    endpoint: Endpoint,
    calls: Arc<AtomicU32>,
    server: tokio::task::JoinHandle<()>,
}

impl Stub {
    async fn answering(answer: impl Fn(u32) -> Response + Clone + Send + Sync + 'static) -> Self {
        let calls = Arc::new(AtomicU32::new(0));
        let counter = calls.clone();
        let router = Router::new().fallback(move || {
            let (answer, number) = (answer.clone(), counter.fetch_add(1, Ordering::SeqCst));
            async move { answer(number) }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let patience = Patience { call: Duration::from_secs(3), ..Patience::default() };
        Self { endpoint: Endpoint::new(&url, patience).unwrap(), calls, server }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn owner() -> Owner {
    Owner::new("cluster", "object").unwrap()
}

fn wish() -> CorridorRequest {
    let path = PathSpec { lanes: 1, lambda_nm: vec![1550], min_gbps: 10, ..PathSpec::default() };
    CorridorRequest { owner: owner(), path, ticket: None }
}

async fn allocate(endpoint: &Endpoint) -> DaemonError {
    endpoint.as_corrd().allocate(&wish().key(), &wish()).await.unwrap_err()
}

#[tokio::test]
async fn a_page_of_a_proxy_is_no_answer() {
    for body in ["<html>", "", "[]", "{}", "{\"corridor_id\": 5}", "\u{feff}{}"] {
        let stub = Stub::answering(move |_| (StatusCode::OK, body).into_response()).await;
        let error = allocate(&stub.endpoint).await;
        assert_eq!(error.label(), "decode", "{body:?}: {error}");
        assert!(error.is_ambiguous() && error.is_retryable());
        assert_eq!(stub.calls(), 1);
    }
}

/// A 200 with a page, a 404 of a proxy and a 403 of a gateway must never free a finalizer.
#[tokio::test]
async fn only_a_daemon_can_say_that_something_is_gone() {
    for status in [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::FORBIDDEN] {
        let stub = Stub::answering(move |_| (status, "<html>").into_response()).await;
        let released = stub.endpoint.as_corrd().release("cor-1", &owner()).await;
        assert!(released.is_err(), "{status}: {released:?}");
        let seen = stub.endpoint.as_corrd().get("cor-1").await;
        assert!(seen.is_err(), "{status}: {seen:?}");
    }
    let stub = Stub::answering(|_| StatusCode::NO_CONTENT.into_response()).await;
    assert_eq!(stub.endpoint.as_corrd().release("c", &owner()).await.unwrap(), Released::Gone);
    let body = r#"{"reason":"owner","message":"not yours"}"#;
    let stub = Stub::answering(move |_| (StatusCode::FORBIDDEN, body).into_response()).await;
    assert_eq!(stub.endpoint.as_corrd().release("c", &owner()).await.unwrap(), Released::NotOurs);
}

#[tokio::test]
async fn repeatable_calls_survive_a_passing_failure() {
    let stub = Stub::answering(|number| match number {
        0 | 1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => (StatusCode::OK, r#"{"corridors":[]}"#).into_response(),
    })
    .await;
    assert!(stub.endpoint.as_corrd().list("cluster/").await.unwrap().is_empty());
    assert_eq!(stub.calls(), 3);
}

#[tokio::test]
async fn a_long_poll_is_left_to_its_caller_to_repeat() {
    let stub = Stub::answering(|_| StatusCode::SERVICE_UNAVAILABLE.into_response()).await;
    let page = stub.endpoint.as_corrd().telemetry_since(None, Duration::from_secs(1)).await;
    assert!(page.is_err_and(|error| error.is_retryable()));
    assert_eq!(stub.calls(), 1);
}

/// Controllers hold the daemons behind their traits.
#[tokio::test]
async fn every_daemon_can_be_held_as_an_object() {
    let body = r#"{"corridors":[],"bundles":[],"devices":[]}"#;
    let stub = Stub::answering(move |_| (StatusCode::OK, body).into_response()).await;
    let corrd: Arc<dyn Corrd> = Arc::new(stub.endpoint.clone());
    let memqosd: Arc<dyn Memqosd> = Arc::new(stub.endpoint.clone());
    let attestd: Arc<dyn Attestd> = Arc::new(stub.endpoint.clone());
    assert!(corrd.list("").await.unwrap().is_empty());
    assert!(memqosd.list("").await.unwrap().is_empty());
    assert!(attestd.devices().await.unwrap().is_empty());
}

#[tokio::test]
async fn repeats_are_bounded() {
    let stub = Stub::answering(|_| StatusCode::BAD_GATEWAY.into_response()).await;
    let error = allocate(&stub.endpoint).await;
    assert!(matches!(error, DaemonError::Failed { status: 502, .. }), "{error}");
    assert!(error.is_retryable());
    assert_eq!(stub.calls(), 3);
}

#[tokio::test]
async fn what_must_not_be_repeated_is_not() {
    let stub = Stub::answering(|_| StatusCode::SERVICE_UNAVAILABLE.into_response()).await;
    let ask = RecalibrationRequest::default();
    stub.endpoint.recalibrate("cor-1", &owner(), &ask).await.unwrap_err();
    assert_eq!(stub.calls(), 1);
    let question = VerifyRequest {
        device_id: "d".into(),
        nonce: "n".into(),
        subject: "s".into(),
        tenant: "t".into(),
        pqc: false,
    };
    stub.endpoint.verify(&question).await.unwrap_err();
    assert_eq!(stub.calls(), 2);
}

#[tokio::test]
async fn refusals_are_not_repeated_and_say_whether_waiting_helps() {
    for (status, reason, retryable) in [
        (422, "reach", false),
        (409, "key_reused", false),
        (507, "pool_lanes", true),
        (418, "a_reason_of_tomorrow", true),
    ] {
        let stub = Stub::answering(move |_| {
            let body = format!(r#"{{"reason":"{reason}","message":"m"}}"#);
            (StatusCode::from_u16(status).unwrap(), body).into_response()
        })
        .await;
        let error = allocate(&stub.endpoint).await;
        assert!(error.is_refusal() && !error.is_ambiguous(), "{error}");
        assert_eq!(error.is_retryable(), retryable, "{error}");
        assert_eq!(stub.calls(), 1);
    }
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let patience = Patience { connect: Duration::from_secs(1), call: Duration::from_millis(300) };
    let endpoint = Endpoint::new(&url, patience).unwrap();
    let start = Instant::now();
    let error = allocate(&endpoint).await;
    assert!(matches!(error, DaemonError::Deadline { .. }), "{error}");
    assert!(error.is_ambiguous() && start.elapsed() < Duration::from_secs(3));
}

/// A reply that never ends is cut by the deadline too, not only one that never begins.
#[tokio::test]
async fn a_dripping_body_ends_at_the_deadline() {
    let stub = Stub::answering(|_| {
        let drip = futures::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Some((Ok::<_, std::io::Error>(" "), ()))
        });
        Body::from_stream(drip).into_response()
    })
    .await;
    let error = allocate(&stub.endpoint).await;
    assert!(matches!(error, DaemonError::Deadline { .. }), "{error}");
}

#[tokio::test]
async fn an_endless_body_is_cut_by_its_size() {
    let stub = Stub::answering(|_| {
        let chunk = vec![b' '; 1 << 20];
        let flood = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
        Body::from_stream(flood).into_response()
    })
    .await;
    let patience = Patience { call: Duration::from_mins(1), ..Patience::default() };
    let endpoint = Endpoint::new(stub.endpoint.url(), patience).unwrap();
    let error = allocate(&endpoint).await;
    assert!(matches!(error, DaemonError::Overflow { .. }), "{error}");
}

#[tokio::test]
async fn nobody_there_is_not_ambiguous() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let endpoint = Endpoint::new(&url, Patience::default()).unwrap();
    let error = allocate(&endpoint).await;
    assert!(matches!(error, DaemonError::Connect { .. }), "{error}");
    assert!(!error.is_ambiguous() && error.is_retryable());
    assert_eq!(error.refusal(), None::<RefusalReason>);
}

#[test]
fn addresses_are_checked_before_use() {
    for url in ["", "127.0.0.1:80", "ftp://host", "http://", "http://host/?q=1", "not a url"] {
        assert!(Endpoint::new(url, Patience::default()).is_err(), "{url:?}");
    }
    for url in ["http://host", "http://host:1/prefix/", "https://host"] {
        assert!(Endpoint::new(url, Patience::default()).is_ok(), "{url:?}");
    }
}
