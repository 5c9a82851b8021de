//! Faults on purpose: each does what it says, to the requests it names, and then all is well again.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use sim::{Fault, Matching, Verb};

use crate::{JSON, call, config_map, get, refusal, start};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PATIENCE: Duration = Duration::from_secs(10);

fn maps_at(client: kube::Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

#[tokio::test]
async fn a_refused_request_is_not_carried_out() {
    let (server, client) = start().await;
    let maps = maps_at(client);
    let creations = Matching::any().verb(Verb::Create).resource("configmaps");
    server.inject(creations, Fault::Refuse(503), 2);
    for _ in 0..2 {
        let refused = maps.create(&PostParams::default(), &config_map("a")).await;
        let (code, reason, _) = refusal(refused);
        assert_eq!((code, reason.as_str()), (503, "ServiceUnavailable"));
    }
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert_eq!(server.faults_waiting(), 0);
}

#[tokio::test]
async fn a_lost_reply_is_of_a_request_that_was_carried_out() {
    let (server, client) = start().await;
    let maps = maps_at(client.clone());
    server.inject(Matching::any().verb(Verb::Create), Fault::LoseReply, 1);
    let lost = maps.create(&PostParams::default(), &config_map("a")).await;
    assert!(!matches!(lost, Ok(_) | Err(kube::Error::Api(_))), "not an answer: {lost:?}");
    get(&client, &format!("{MAPS}/a")).await;
    let again = maps.create(&PostParams::default(), &config_map("a")).await;
    assert_eq!(refusal(again).1, "AlreadyExists");
}

#[tokio::test]
async fn a_fault_may_be_meant_for_one_subresource_of_one_object() {
    let (server, client) = start().await;
    for name in ["a", "b"] {
        crate::create_pod(&client, crate::pod(name)).await;
    }
    let meant = Matching::any().resource("pods").subresource("binding").name("a");
    server.inject(meant, Fault::Refuse(500), 1);
    let bind = async |name: &str| {
        let path = format!("/api/v1/namespaces/default/pods/{name}/binding");
        let binding = json!({ "metadata": { "name": name }, "target": { "name": "n1" } });
        call(&client, "POST", &path, JSON, binding).await.0
    };
    assert_eq!(bind("b").await, 201);
    assert_eq!(bind("a").await, 500);
    assert_eq!(bind("a").await, 201);
}

#[tokio::test]
async fn a_delayed_request_is_overtaken() {
    let (server, client) = start().await;
    let maps = maps_at(client.clone());
    // Far longer than the other request takes; the test does not wait for it to pass.
    let slow = Matching::any().verb(Verb::Create);
    server.inject(slow, Fault::Delay(Duration::from_hours(1)), 1);
    let delayed = tokio::spawn({
        let maps = maps.clone();
        async move { maps.create(&PostParams::default(), &config_map("late")).await }
    });
    while server.faults_waiting() > 0 {
        tokio::task::yield_now().await;
    }
    maps.create(&PostParams::default(), &config_map("early")).await.unwrap();
    let there = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(there.items.len(), 1, "the delayed one is not there yet");
    delayed.abort();
}

#[tokio::test]
async fn a_cut_watch_breaks_off_and_can_be_taken_up_again() {
    let (server, client) = start().await;
    let maps = maps_at(client);
    let mut events = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    assert_eq!(server.cut_watches(&Matching::any().resource("pods")), 0);
    assert_eq!(server.cut_watches(&Matching::any().resource("configmaps")), 1);
    let end = tokio::time::timeout(PATIENCE, events.next()).await.expect("it ends");
    assert!(matches!(end, None | Some(Err(_))), "nothing but the end: {end:?}");

    let version = made.metadata.resource_version.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("b")).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
}

#[tokio::test]
async fn a_silent_watch_says_later_what_it_kept_to_itself() {
    let (server, client) = start().await;
    let maps = maps_at(client.clone());
    let mut early = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    server.silence_watches(Matching::any().resource("configmaps"));
    let mut late = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let spoken: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let mut others = spoken.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let node = json!({ "metadata": { "name": "n1" } });
    call(&client, "POST", "/api/v1/nodes", JSON, node).await;
    assert!(matches!(others.next().await, Some(Ok(WatchEvent::Added(_)))), "not silenced");
    for silent in [&mut early, &mut late] {
        // What happened before has reached the others.
        assert!(futures::poll!(silent.next()).is_pending());
    }
    server.end_silence();
    for watch in [&mut early, &mut late] {
        let event = tokio::time::timeout(PATIENCE, watch.next()).await.expect("it speaks again");
        assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))));
    }
}

#[tokio::test]
async fn a_silence_that_outlasts_the_history_ends_in_410() {
    let (server, client) = start().await;
    let maps = maps_at(client);
    server.silence_watches(Matching::any());
    let mut events = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    server.expire_history();
    server.end_silence();
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else { panic!("no error") };
    assert_eq!(status.code, 410);
}

#[tokio::test]
async fn whoever_is_told_to_wait_is_told_how_long() {
    let (server, client) = start().await;
    server.inject(Matching::any(), Fault::Refuse(429), 1);
    let request = http::Request::get(MAPS).body(kube::client::Body::from(Vec::new())).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(call(&client, "GET", MAPS, JSON, Value::Null).await.0, 200);
}
