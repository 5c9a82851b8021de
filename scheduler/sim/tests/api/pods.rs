//! The rules of the real server for Pods.

use serde_json::{Value, json};

use crate::{JSON, MERGE, STRATEGIC, call, pod, post, start};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_new_pod_gets_the_defaults_that_schedulers_read() {
    let (_server, client) = start().await;
    let mut body = pod("a");
    body["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": 1 }, "limits": { "cpu": "2", "memory": "1Gi" } });
    body["status"] = json!({ "phase": "Running" });
    let made = post(&client, PODS, body).await;
    assert_eq!(made["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(made["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    let requests = &made["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(
        *requests,
        json!({ "cpu": "1", "memory": "1Gi" }),
        "text, and filled from the limits"
    );
    assert_eq!(made["status"], json!({ "phase": "Pending", "qosClass": "Burstable" }));
    assert_eq!(made["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_priority_class_becomes_a_priority() {
    let (_server, client) = start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class =
        json!({ "metadata": { "name": "high" }, "value": 1000, "preemptionPolicy": "Never" });
    post(&client, classes, class).await;
    let mut urgent = pod("urgent");
    urgent["spec"]["priorityClassName"] = json!("high");
    let urgent = post(&client, PODS, urgent).await;
    assert_eq!(urgent["spec"]["priority"], 1000);
    assert_eq!(urgent["spec"]["preemptionPolicy"], "Never");
    let mut lost = pod("lost");
    lost["spec"]["priorityClassName"] = json!("absent");
    let (code, status) = call(&client, "POST", PODS, JSON, lost).await;
    assert_eq!(code, 403, "{status}");
}

#[tokio::test]
async fn a_gated_pod_says_so_until_its_gates_go() {
    let (_server, client) = start().await;
    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] =
        json!([{ "name": "a.example/x" }, { "name": "a.example/y" }]);
    let made = post(&client, PODS, gated).await;
    assert_eq!(made["status"]["conditions"][0]["reason"], "SchedulingGated");
    let path = format!("{PODS}/gated");
    let more = json!({ "spec": { "schedulingGates": [{ "name": "a.example/z" }] } });
    assert_eq!(call(&client, "PATCH", &path, STRATEGIC, more).await.0, 422, "gates only go");
    let selector = json!({ "spec": { "nodeSelector": { "zone": "east" } } });
    assert_eq!(call(&client, "PATCH", &path, MERGE, selector).await.0, 200, "while it is gated");
    let none = json!({ "spec": { "schedulingGates": null } });
    let (code, opened) = call(&client, "PATCH", &path, MERGE, none).await;
    assert_eq!(code, 200, "{opened}");
    assert_eq!(opened["metadata"]["generation"], 3);
    let selector = json!({ "spec": { "nodeSelector": { "zone": "west" } } });
    assert_eq!(call(&client, "PATCH", &path, MERGE, selector).await.0, 422, "no longer gated");
}

#[tokio::test]
async fn a_pods_spec_hardly_changes() {
    let (_server, client) = start().await;
    let mut body = pod("a");
    body["spec"]["activeDeadlineSeconds"] = json!(100);
    let toleration = |key: &str| json!({ "key": key, "operator": "Exists" });
    body["spec"]["tolerations"] = json!([toleration("a")]);
    post(&client, PODS, body).await;
    let image = json!({ "containers": [{ "name": "main", "image": "app:2" }] });
    for (spec, code) in [
        (image, 200),
        (json!({ "nodeName": "n1" }), 422),
        (json!({ "priority": 7 }), 422),
        (json!({ "schedulerName": "other" }), 422),
        (json!({ "containers": [{ "name": "second", "image": "i" }] }), 422),
        (json!({ "tolerations": [toleration("b")] }), 422),
        (json!({ "tolerations": [toleration("a"), toleration("b")] }), 200),
        (json!({ "activeDeadlineSeconds": 200 }), 422),
        (json!({ "activeDeadlineSeconds": 50 }), 200),
    ] {
        let patch = json!({ "spec": spec });
        let (got, answer) = call(&client, "PATCH", &format!("{PODS}/a"), STRATEGIC, patch).await;
        assert_eq!(got, code, "{spec}: {answer}");
    }
}

#[tokio::test]
async fn pods_that_cannot_be_are_refused() {
    let (_server, client) = start().await;
    let mut gated_and_placed = pod("x");
    gated_and_placed["spec"]["schedulingGates"] = json!([{ "name": "a.example/x" }]);
    gated_and_placed["spec"]["nodeName"] = json!("n1");
    for (body, code) in [
        (json!({ "metadata": { "name": "x" } }), 422),
        (json!({ "metadata": { "name": "x" }, "spec": { "containers": [] } }), 422),
        (json!({ "metadata": { "name": "x" }, "spec": { "containers": [{ "name": "c" }] } }), 422),
        (json!({ "metadata": { "name": "x" }, "spec": { "containers": "none" } }), 400),
        (gated_and_placed, 422),
    ] {
        let (got, answer) = call(&client, "POST", PODS, JSON, body.clone()).await;
        assert_eq!(got, code, "{body}: {answer}");
    }
}

#[tokio::test]
async fn status_and_spec_of_a_pod_are_kept_apart() {
    let (_server, client) = start().await;
    post(&client, PODS, pod("a")).await;
    let both = json!({
        "metadata": { "labels": { "seen": "yes" } },
        "spec": { "nodeName": "n1" }, "status": { "phase": "Running" },
    });
    let path = format!("{PODS}/a");
    let (code, after) = call(&client, "PATCH", &format!("{path}/status"), MERGE, both).await;
    assert_eq!(code, 200, "{after}");
    assert_eq!(after["status"]["phase"], "Running");
    assert_eq!(after["spec"].get("nodeName"), None);
    assert_eq!(after["metadata"]["labels"]["seen"], "yes", "as in the real server");
    let status = json!({ "status": { "phase": "Failed" } });
    let (_, after) = call(&client, "PATCH", &path, MERGE, status).await;
    assert_eq!(after["status"]["phase"], "Running");
}

#[tokio::test]
async fn a_bound_pod_is_gone_at_once_as_there_is_no_kubelet() {
    let (_server, client) = start().await;
    let mut placed = pod("a");
    placed["spec"]["nodeName"] = json!("n1");
    post(&client, PODS, placed).await;
    let path = format!("{PODS}/a");
    let (code, shown) = call(&client, "DELETE", &path, JSON, Value::Null).await;
    assert_eq!((code, &shown["kind"]), (200, &json!("Pod")));
    assert_eq!(call(&client, "GET", &path, JSON, Value::Null).await.0, 404);
}
