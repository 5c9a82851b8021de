//! Lists in pages, and lists and watches of the past.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::{JSON, call, get, post, start};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(client: &Client, names: &[&str]) {
    for name in names {
        let map = json!({ "metadata": { "name": name, "labels": { "first": name[..1] } } });
        post(client, MAPS, map).await;
    }
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn token(list: &Value) -> String {
    list["metadata"]["continue"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn all_pages_show_the_moment_of_the_first() {
    let (_server, client) = start().await;
    create(&client, &["a", "b", "c", "d", "e"]).await;
    let first = get(&client, &format!("{MAPS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);

    call(&client, "DELETE", &format!("{MAPS}/c"), JSON, Value::Null).await;
    create(&client, &["bb", "z"]).await;
    let relabelled = json!({ "metadata": { "name": "d" }, "data": { "new": "yes" } });
    assert_eq!(call(&client, "PUT", &format!("{MAPS}/d"), JSON, relabelled).await.0, 200);

    let second = get(&client, &format!("{MAPS}?limit=2&continue={}", token(&first))).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][1].get("data"), None, "as it was at the first page");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let third = get(&client, &format!("{MAPS}?limit=2&continue={}", token(&second))).await;
    assert_eq!((names(&third), token(&third)), (vec!["e"], String::new()));
    assert_eq!(third["metadata"].get("remainingItemCount"), None);
}

#[tokio::test]
async fn pages_go_over_namespaces_and_through_selectors() {
    let (_server, client) = start().await;
    for namespace in ["n", "n-1"] {
        post(&client, "/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).await;
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        for name in ["x", "y"] {
            let labels = json!({ "name": name, "labels": { "name": name } });
            post(&client, &maps, json!({ "metadata": labels })).await;
        }
    }
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("/api/v1/configmaps?limit=1&labelSelector=name%3Dy&continue={next}");
        let page = get(&client, &path).await;
        assert_eq!(page["metadata"].get("remainingItemCount"), None, "nobody has counted these");
        for item in page["items"].as_array().unwrap() {
            seen.push(item["metadata"]["namespace"].as_str().unwrap().to_owned());
        }
        next = token(&page);
        if next.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["n-1", "n"], "in the order of etcd's keys");
}

#[tokio::test]
async fn an_expired_page_says_how_to_go_on() {
    let (server, client) = start().await;
    create(&client, &["a", "b", "c"]).await;
    let first = get(&client, &format!("{MAPS}?limit=1")).await;
    create(&client, &["bb"]).await;
    server.expire_history();
    let path = format!("{MAPS}?limit=5&continue={}", token(&first));
    let (code, status) = call(&client, "GET", &path, JSON, Value::Null).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let path = format!("{MAPS}?limit=5&continue={}", token(&status));
    assert_eq!(names(&get(&client, &path).await), ["b", "bb", "c"], "the rest as it is now");
}

#[tokio::test]
async fn a_version_may_be_asked_for_exactly_or_at_least() {
    let (server, client) = start().await;
    create(&client, &["a"]).await;
    let then = get(&client, MAPS).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    create(&client, &["b"]).await;
    let list = async |query: &str| {
        let path = format!("{MAPS}?resourceVersion={then}&{query}");
        call(&client, "GET", &path, JSON, Value::Null).await
    };
    let (_, exact) = list("resourceVersionMatch=Exact").await;
    assert_eq!(names(&exact), ["a"]);
    assert_eq!(exact["metadata"]["resourceVersion"], then.as_str());
    assert_eq!(names(&list("limit=9").await.1), ["a"], "with a limit, a version is exact");
    assert_eq!(names(&list("").await.1), ["a", "b"]);
    assert_eq!(names(&list("limit=9&resourceVersionMatch=NotOlderThan").await.1), ["a", "b"]);
    server.expire_history();
    assert_eq!(list("resourceVersionMatch=Exact").await.0, 410);
    assert_eq!(names(&list("").await.1), ["a", "b"]);
}

#[tokio::test]
async fn options_that_make_no_sense_together_are_refused() {
    let (_server, client) = start().await;
    for (query, code) in [
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422),
        ("resourceVersionMatch=Roughly&resourceVersion=1", 422),
        ("sendInitialEvents=true", 422),
        ("watch=1&resourceVersionMatch=Exact", 422),
        ("watch=1&sendInitialEvents=true", 422),
        ("continue=nonsense", 400),
        ("continue=e30", 400),
        ("limit=many", 400),
        ("limit=-1", 200),
        ("limit=0", 200),
    ] {
        let (got, status) =
            call(&client, "GET", &format!("{MAPS}?{query}"), JSON, Value::Null).await;
        assert_eq!(got, code, "{query}: {status}");
    }
    create(&client, &["a", "b"]).await;
    let first = get(&client, &format!("{MAPS}?limit=1")).await;
    let both = format!("{MAPS}?resourceVersion=1&continue={}", token(&first));
    assert_eq!(call(&client, "GET", &both, JSON, Value::Null).await.0, 400);
}

#[tokio::test]
async fn a_watch_of_a_forgotten_past_is_expired() {
    let (server, client) = start().await;
    create(&client, &["a", "b"]).await;
    server.expire_history();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut events = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else { panic!("no error") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(status.message.starts_with("too old resource version: 1 ("), "{}", status.message);
}
