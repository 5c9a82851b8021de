//! No request, however odd, takes the server down or gets an answer that is not a `Status`.

use serde_json::json;

use crate::{
    APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, call, call_bytes, create_pod, get, pod, post, start,
};

#[tokio::test]
async fn garbage_is_refused_politely() {
    let (_server, client) = start().await;
    create_pod(&client, pod("a")).await;
    let lanes = "/apis/example.io/v1/namespaces/default/lanes";
    post(
        &client,
        lanes,
        json!({ "apiVersion": "example.io/v1", "kind": "Lane", "metadata": { "name": "a" } }),
    )
    .await;
    let paths = [
        "/api/v1/namespaces/default/pods".to_owned(),
        "/api/v1/namespaces/default/pods/a".to_owned(),
        "/api/v1/namespaces/default/pods/a/status".to_owned(),
        "/api/v1/namespaces/default/pods/a/binding".to_owned(),
        "/api/v1/namespaces/default/bindings".to_owned(),
        "/api/v1/namespaces/default/status".to_owned(),
        "/api/v1/nodes".to_owned(),
        "/apis/events.k8s.io/v1/namespaces/default/events".to_owned(),
        lanes.to_owned(),
        format!("{lanes}/a"),
        format!("{lanes}/a/status"),
    ];
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let bodies = ODD_BODIES.iter().copied().chain([deep.as_str()]);
    let kinds = [
        JSON,
        JSON_PATCH,
        MERGE,
        STRATEGIC,
        APPLY,
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "",
    ];
    for path in &paths {
        for method in ["POST", "PUT", "PATCH"] {
            for kind in kinds {
                for body in bodies.clone() {
                    let path = format!("{path}?fieldManager=x");
                    let (code, answer) =
                        call_bytes(&client, method, &path, kind, body.as_bytes().to_vec()).await;
                    assert!(answer["kind"].is_string(), "{method} {path} {kind} {body}: {answer}");
                    assert!(code < 400 || answer["kind"] == "Status", "{method} {path} {body}");
                }
            }
        }
    }
    for path in &paths {
        call(&client, "DELETE", path, JSON, json!({ "preconditions": 5, "dryRun": [5] })).await;
    }
    get(&client, "/api/v1/namespaces").await;
}

#[tokio::test]
async fn odd_paths_and_queries_are_refused_politely() {
    let (_server, client) = start().await;
    for path in [
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/default/pods/a/b/c/d",
        "/api",
        "/apis",
        "/api/v2",
        "/apis/x",
        "/apis/x/y",
        "/apis/x/y/z",
        "/openapi/v2",
        "/openapi/v3/x",
        "/api/v1/namespaces/%ff%fe/pods",
        "/api/v1/namespaces/%2/pods",
        "/api/v1/pods/%zz",
        "/api/v1/namespaces/a%2Fb/pods",
        "/api/v1/namespaces/default/nodes",
        "/..",
        "/api/v1/pods/a",
        "/api/v1/pods?watch=maybe",
        "/api/v1/pods?watch=1&resourceVersion=x",
        "/api/v1/pods?watch=1&timeoutSeconds=-1",
        "/api/v1/pods?labelSelector=((((",
        "/api/v1/pods?fieldSelector=%00",
        "/api/v1/pods?continue=x",
        "/api/v1/pods?%ff=%ff",
        "/api/v1/pods?resourceVersion=99999999999999999999999",
    ] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] {
            let (code, answer) = call(&client, method, path, JSON, json!({})).await;
            assert!((200..600).contains(&code), "{method} {path}");
            let empty = answer == json!("");
            assert!(code < 400 || empty || answer["kind"] == "Status", "{method} {path}: {answer}");
        }
    }
    for path in ["/healthz", "/readyz", "/livez"] {
        assert_eq!(call(&client, "GET", path, JSON, json!(null)).await, (200, json!("ok")));
    }
    assert_eq!(get(&client, "/version").await["minor"], "36");
}

#[tokio::test]
async fn bodies_are_bounded() {
    let (_server, client) = start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let huge = json!({ "metadata": { "name": "x" }, "data": { "a": "x".repeat(4 << 20) } });
    let (code, status) = call(&client, "POST", path, JSON, huge).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")));
}

const ODD_BODIES: &[&str] = &[
    "",
    "{",
    "null",
    "1",
    "\"text\"",
    "[]",
    "[1]",
    "{}",
    "\u{0}",
    "{\"metadata\":5}",
    "{\"metadata\":{\"labels\":[1]}}",
    "{\"metadata\":{\"finalizers\":{\"a\":1}}}",
    "{\"metadata\":{\"name\":\"b\",\"annotations\":{\"a\":{}}},\"target\":{\"name\":[]}}",
    "{\"metadata\":{\"name\":\"a\"},\"target\":5}",
    "{\"metadata\":{\"name\":\"b\"},\"spec\":[]}",
    "{\"spec\":{\"containers\":{\"a\":1}}}",
    "{\"spec\":{\"containers\":[null,5,{\"name\":[]}]}}",
    "{\"status\":{\"conditions\":5}}",
    "{\"status\":{\"conditions\":[5,{\"type\":{}}]}}",
    "{\"$patch\":\"delete\"}",
    "{\"spec\":{\"tolerations\":[5]}}",
    "a: [b",
    "- x",
    "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]",
    "[{\"op\":\"add\",\"path\":\"/metadata\",\"value\":5}]",
    "[{\"op\":\"move\",\"from\":\"/metadata\",\"path\":\"/spec/x\"}]",
];
