//! The kinds of patch, through the server.

use serde_json::{Value, json};

use crate::{APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, call, call_bytes, get, pod, post, start};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn conditions_of_a_pod_merge_by_type() {
    let (_server, client) = start().await;
    post(&client, PODS, pod("a")).await;
    let path = format!("{PODS}/a/status");
    let condition = |kind: &str, reason: Value| json!({ "status": { "conditions": [{ "type": kind, "status": "False", "reason": reason }] } });
    call(&client, "PATCH", &path, STRATEGIC, condition("PodScheduled", json!("Unschedulable")))
        .await;
    call(&client, "PATCH", &path, STRATEGIC, condition("Ready", json!("Waiting"))).await;
    let (code, after) =
        call(&client, "PATCH", &path, STRATEGIC, condition("PodScheduled", Value::Null)).await;
    assert_eq!(code, 200);
    let expected = json!([
        { "type": "PodScheduled", "status": "False" },
        { "type": "Ready", "status": "False", "reason": "Waiting" },
    ]);
    assert_eq!(after["status"]["conditions"], expected);
}

#[tokio::test]
async fn apply_creates_and_then_merges() {
    let (server, client) = start().await;
    let path = "/api/v1/namespaces/default/configmaps/one?fieldManager=test&force=true";
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n";
    let (code, made) = call_bytes(&client, "PATCH", path, APPLY, yaml.into()).await;
    assert_eq!(code, 201, "{made}");
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "b": "2" } });
    let (code, merged) = call(&client, "PATCH", path, APPLY, body).await;
    assert_eq!((code, &merged["data"]), (200, &json!({ "a": "1", "b": "2" })));
    let log = server.write_log();
    assert!(log[log.len() - 2..].iter().all(|write| write.verb == "apply"));
    let unnamed = "/api/v1/namespaces/default/configmaps/one";
    assert_eq!(call(&client, "PATCH", unnamed, APPLY, json!({})).await.0, 422, "no field manager");
}

#[tokio::test]
async fn apply_on_status_touches_only_the_status() {
    let (_server, client) = start().await;
    post(&client, PODS, pod("a")).await;
    let body = json!({
        "apiVersion": "v1", "kind": "Pod",
        "spec": { "nodeName": "n1", "containers": [] },
        "status": { "conditions": [{ "type": "PodScheduled", "status": "False" }] },
    });
    let path = format!("{PODS}/a/status?fieldManager=test");
    let (code, after) = call(&client, "PATCH", &path, APPLY, body.clone()).await;
    assert_eq!(code, 200, "{after}");
    assert_eq!(after["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(after["status"]["phase"], "Pending", "what was not applied stays");
    assert_eq!(after["spec"].get("nodeName"), None);
    let absent = format!("{PODS}/absent/status?fieldManager=test");
    assert_eq!(
        call(&client, "PATCH", &absent, APPLY, body).await.0,
        404,
        "a status creates nothing"
    );
}

#[tokio::test]
async fn patches_that_are_not_modelled_say_so() {
    let (_server, client) = start().await;
    post(&client, PODS, pod("a")).await;
    let path = format!("{PODS}/a");
    assert_eq!(call(&client, "PATCH", &path, "text/plain", json!({})).await.0, 415);
    let lanes = "/apis/example.io/v1/namespaces/default/lanes";
    post(
        &client,
        lanes,
        json!({ "apiVersion": "example.io/v1", "kind": "Lane", "metadata": { "name": "a" } }),
    )
    .await;
    let lane = format!("{lanes}/a");
    assert_eq!(call(&client, "PATCH", &lane, STRATEGIC, json!({})).await.0, 415, "as the real one");
}

#[tokio::test]
async fn a_json_patch_changes_all_that_it_names_or_nothing() {
    let (_server, client) = start().await;
    post(&client, PODS, pod("a")).await;
    let path = format!("{PODS}/a");
    let label = |value: &str| json!({ "op": "add", "path": "/metadata/labels", "value": { "tier": value } });
    let (code, after) = call(&client, "PATCH", &path, JSON_PATCH, json!([label("1")])).await;
    assert_eq!((code, &after["metadata"]["labels"]), (200, &json!({ "tier": "1" })));
    let test = json!({ "op": "test", "path": "/metadata/labels/tier", "value": "9" });
    let (code, status) = call(&client, "PATCH", &path, JSON_PATCH, json!([label("2"), test])).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    assert_eq!(get(&client, &path).await, after, "a patch that fails changes nothing");
    let (code, _) = call(&client, "PATCH", &path, JSON_PATCH, json!({ "op": "add" })).await;
    assert_eq!(code, 400, "not a list of operations");
}

#[tokio::test]
async fn a_patch_may_carry_preconditions() {
    let (_server, client) = start().await;
    post(&client, PODS, pod("a")).await;
    let path = format!("{PODS}/a");
    let stale = json!({ "metadata": { "resourceVersion": "1", "labels": { "a": "b" } } });
    assert_eq!(call(&client, "PATCH", &path, MERGE, stale).await.0, 409);
    let other = json!({ "metadata": { "uid": "another" } });
    assert_eq!(call(&client, "PATCH", &path, MERGE, other).await.0, 422);
    let version = get(&client, &path).await["metadata"]["resourceVersion"].clone();
    let fresh = json!({ "metadata": { "resourceVersion": version, "labels": { "a": "b" } } });
    assert_eq!(call(&client, "PATCH", &path, MERGE, fresh).await.0, 200);
}

#[tokio::test]
async fn taints_are_replaced_as_a_whole() {
    let (_server, client) = start().await;
    let taint = |key: &str| json!({ "key": key, "effect": "NoSchedule" });
    let node = json!({ "metadata": { "name": "n1" }, "spec": { "taints": [taint("a")] } });
    post(&client, "/api/v1/nodes", node).await;
    let patch = json!({ "spec": { "taints": [taint("b")] } });
    let (_, after) = call(&client, "PATCH", "/api/v1/nodes/n1", STRATEGIC, patch).await;
    assert_eq!(after["spec"]["taints"], json!([taint("b")]));
    let (code, _) = call(&client, "PUT", "/api/v1/nodes/n1", JSON, after).await;
    assert_eq!(code, 200);
}
