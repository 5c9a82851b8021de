//! Custom resources: schema, generation, and the border between spec and status.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};

use crate::{APPLY, JSON, MERGE, call, get, post, start};

const LANES: &str = "/apis/example.io/v1/namespaces/default/lanes";

fn lane(spec: Value) -> Value {
    json!({ "apiVersion": "example.io/v1", "kind": "Lane", "metadata": { "name": "a" }, "spec": spec })
}

#[tokio::test]
async fn spec_and_status_are_written_apart() {
    let (_server, client) = start().await;
    let mut body = lane(json!({ "gbps": 4 }));
    body["status"] = json!({ "phase": "Ready" });
    let made = post(&client, LANES, body).await;
    assert_eq!(made.get("status"), None, "a status is not created with its object");
    assert_eq!(
        (&made["metadata"]["generation"], &made["spec"]["mode"]),
        (&json!(1), &json!("Queue"))
    );

    let both = json!({
        "metadata": { "labels": { "a": "b" }, "finalizers": ["x.example/y"] },
        "spec": { "gbps": 8 }, "status": { "phase": "Ready" },
    });
    let path = format!("{LANES}/a/status");
    let (code, after) = call(&client, "PATCH", &path, MERGE, both.clone()).await;
    assert_eq!(code, 200, "{after}");
    assert_eq!((&after["spec"]["gbps"], &after["status"]["phase"]), (&json!(4), &json!("Ready")));
    assert_eq!(after["metadata"].get("labels"), None, "metadata is reset too");
    assert_eq!(after["metadata"].get("finalizers"), None);
    assert_eq!(after["metadata"]["generation"], 1);

    let mut both = both;
    both["status"]["phase"] = json!("Failed");
    let (_, after) = call(&client, "PATCH", &format!("{LANES}/a"), MERGE, both).await;
    assert_eq!((&after["spec"]["gbps"], &after["status"]["phase"]), (&json!(8), &json!("Ready")));
    assert_eq!(after["metadata"]["generation"], 2, "the spec changed");
    let label = json!({ "metadata": { "labels": { "a": "c" } } });
    let (_, after) = call(&client, "PATCH", &format!("{LANES}/a"), MERGE, label).await;
    assert_eq!(after["metadata"]["generation"], 2, "a label is not the spec");
}

#[tokio::test]
async fn defaults_return_and_unknown_fields_go() {
    let (_server, client) = start().await;
    post(&client, LANES, lane(json!({ "gbps": 4, "mode": "FailFast", "typo": 1 }))).await;
    let made = get(&client, &format!("{LANES}/a")).await;
    assert_eq!(made["spec"], json!({ "gbps": 4, "mode": "FailFast" }));
    let path = format!("{LANES}/a");
    let mut new = lane(json!({ "gbps": 4 }));
    let (code, status) = call(&client, "PUT", &path, JSON, new.clone()).await;
    assert_eq!(code, 422, "a custom resource is not replaced blindly: {status}");
    new["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let (_, put) = call(&client, "PUT", &path, JSON, new).await;
    assert_eq!(put["spec"]["mode"], "Queue");
}

#[tokio::test]
async fn applied_conditions_merge_as_the_schema_says() {
    let (_server, client) = start().await;
    post(&client, LANES, lane(json!({}))).await;
    for (kind, status) in [("Ready", "False"), ("Drained", "True"), ("Ready", "True")] {
        let body = json!({
            "apiVersion": "example.io/v1", "kind": "Lane", "metadata": { "name": "a" },
            "status": { "conditions": [{ "type": kind, "status": status }] },
        });
        let path = format!("{LANES}/a/status?fieldManager={kind}");
        let (code, answer) = call(&client, "PATCH", &path, APPLY, body).await;
        assert_eq!(code, 200, "{answer}");
    }
    let expected = json!([
        { "type": "Ready", "status": "True" }, { "type": "Drained", "status": "True" },
    ]);
    assert_eq!(get(&client, &format!("{LANES}/a")).await["status"]["conditions"], expected);
}

#[tokio::test]
async fn clients_discover_them() {
    let (_server, client) = start().await;
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let kind = GroupVersionKind::gvk("example.io", "v1", "Lane");
    let (resource, capabilities) = discovery.resolve_gvk(&kind).unwrap();
    assert_eq!((resource.plural.as_str(), capabilities.scope), ("lanes", Scope::Namespaced));
    post(&client, LANES, lane(json!({}))).await;
    let lanes: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let by_field = ListParams::default().fields("spec.mode=Queue");
    assert_eq!(lanes.list(&by_field).await.unwrap().items.len(), 1, "a selectable field");
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lanes.example.io";
    let conditions = get(&client, definition).await["status"]["conditions"].clone();
    assert!(conditions.as_array().unwrap().iter().all(|condition| condition["status"] == "True"));
    let openapi = get(&client, "/openapi/v3/apis/example.io/v1").await;
    assert!(openapi["components"]["schemas"]["example.io.v1.Lane"]["properties"].is_object());
}
