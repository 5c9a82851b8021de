//! A Binding assigns a Pod once, under its preconditions, in one transaction.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};

use crate::{JSON, call, create_pod, get, pod, post, start};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn binding(metadata: Value) -> Value {
    json!({ "metadata": metadata, "target": { "kind": "Node", "name": "n1" } })
}

#[tokio::test]
async fn one_write_sets_node_annotations_labels_and_condition() {
    let (server, client) = start().await;
    let zone = "topology.kubernetes.io/zone";
    let node = json!({ "metadata": { "name": "n1", "labels": { zone: "east" } } });
    post(&client, "/api/v1/nodes", node).await;
    let mut fresh = pod("a");
    fresh["metadata"]["annotations"] = json!({ "keep": "me", "change": "old" });
    let created = create_pod(&client, fresh).await;
    let before = server.write_log().len();

    let annotations = json!({ "change": "new", "corridoros.io/corridorId": "cor-1" });
    let metadata = json!({
        "name": "a", "uid": created.uid(), "resourceVersion": created.resource_version(),
        "annotations": annotations,
    });
    let status = post(&client, &format!("{PODS}/a/binding"), binding(metadata)).await;
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));

    let bound = get(&client, &format!("{PODS}/a")).await;
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["metadata"]["annotations"]["keep"], "me");
    assert_eq!(bound["metadata"]["annotations"]["change"], "new");
    assert_eq!(bound["metadata"]["annotations"]["corridoros.io/corridorId"], "cor-1");
    assert_eq!(bound["metadata"]["labels"][zone], "east", "as the real admission hands it on");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(bound["status"]["conditions"][0]["status"], "True");
    let log = server.write_log();
    assert_eq!(log.len(), before + 1);
    assert_eq!((log[before].verb, log[before].subresource), ("create", "binding"));
    assert_eq!(
        json!(log[before].resource_version.to_string()),
        bound["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn refusals_come_in_the_real_order() {
    let (_server, client) = start().await;
    let free = create_pod(&client, pod("free")).await;
    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] = json!([{ "name": "example.io/wait" }]);
    create_pod(&client, gated).await;
    let mut leaving = pod("leaving");
    leaving["metadata"]["finalizers"] = json!(["example.io/hold"]);
    create_pod(&client, leaving).await;
    call(&client, "DELETE", &format!("{PODS}/leaving"), JSON, Value::Null).await;
    let bound = create_pod(&client, pod("bound")).await;
    post(&client, &format!("{PODS}/bound/binding"), binding(json!({ "name": "bound" }))).await;

    for (name, metadata, code, message) in [
        ("absent", json!({}), 404, "pods \"absent\" not found"),
        (
            "free",
            json!({ "uid": "another" }),
            409,
            "Precondition failed: UID in precondition: another",
        ),
        ("free", json!({ "resourceVersion": "1" }), 409, "Precondition failed: ResourceVersion"),
        // The preconditions come before everything else that may be wrong.
        ("bound", json!({ "uid": "another" }), 409, "Precondition failed: UID"),
        (
            "bound",
            json!({ "uid": bound.uid(), "resourceVersion": bound.resource_version() }),
            409,
            "Precondition failed: ResourceVersion",
        ),
        (
            "bound",
            json!({ "uid": bound.uid() }),
            409,
            "pod bound is already assigned to node \"n1\"",
        ),
        ("gated", json!({}), 409, "pod gated has non-empty .spec.schedulingGates"),
        ("leaving", json!({}), 409, "pod leaving is being deleted, cannot be assigned to a host"),
        ("free", json!({ "name": "other" }), 400, "name in URL does not match"),
    ] {
        let mut metadata = metadata;
        if metadata.get("name").is_none() {
            metadata["name"] = json!(name);
        }
        let path = format!("{PODS}/{name}/binding");
        let (got, status) = call(&client, "POST", &path, JSON, binding(metadata.clone())).await;
        assert_eq!(got, code, "{metadata}: {status}");
        assert!(status["message"].as_str().unwrap().contains(message), "{metadata}: {status}");
        if code == 409 {
            assert_eq!(status["reason"], "Conflict", "{metadata}");
        }
    }
    let metadata = json!({ "name": "free", "uid": free.uid() });
    let path = "/api/v1/namespaces/default/bindings";
    post(&client, path, binding(metadata.clone())).await;
    assert_eq!(
        call(&client, "POST", path, JSON, binding(metadata)).await.0,
        409,
        "the old way too"
    );
}

#[tokio::test]
async fn a_dry_run_binds_nothing() {
    let (_server, client) = start().await;
    create_pod(&client, pod("a")).await;
    let path = format!("{PODS}/a/binding?dryRun=All");
    post(&client, &path, binding(json!({ "name": "a" }))).await;
    assert!(get(&client, &format!("{PODS}/a")).await["spec"].get("nodeName").is_none());
}

#[tokio::test]
async fn of_many_binders_one_wins() {
    const BINDERS: usize = 16;
    let (_server, client) = start().await;
    create_pod(&client, pod("a")).await;
    let bind = |index: usize| {
        let client = client.clone();
        async move {
            let body = json!({
                "metadata": { "name": "a" },
                "target": { "kind": "Node", "name": format!("n{index}") },
            });
            call(&client, "POST", &format!("{PODS}/a/binding"), JSON, body).await.0
        }
    };
    let codes = futures::future::join_all((0..BINDERS).map(bind)).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 409).count(), BINDERS - 1, "{codes:?}");
    let pods: Api<Pod> = Api::default_namespaced(client);
    assert!(pods.get("a").await.unwrap().spec.unwrap().node_name.is_some());
}
