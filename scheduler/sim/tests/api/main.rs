//! The model as its clients see it: through kube-rs, over HTTP.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "JSON literals read better without `&`")]

mod binding;
mod custom_resources;
mod events;
mod faults;
mod objects;
mod pages;
mod patching;
mod pods;
mod robustness;
mod tables;
mod watching;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use sim::ApiServer;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A server and a client that never retries, so that tests see every answer.
async fn start() -> (ApiServer, Client) {
    let addr = "127.0.0.1:0".parse().unwrap();
    let server = ApiServer::start(addr, vec![lane_definition()]).await.unwrap();
    let mut config = Config::new(server.url().parse().unwrap());
    config.default_retry = false;
    (server, Client::try_from(config).unwrap())
}

/// A small custom resource with a status, a default, a keyed list and printer columns.
fn lane_definition() -> CustomResourceDefinition {
    let condition = json!({ "type": "object", "properties": {
        "type": { "type": "string" }, "status": { "type": "string" } } });
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "gbps": { "type": "integer" },
            "mode": { "type": "string", "default": "Queue" },
        }},
        "status": { "type": "object", "properties": {
            "phase": { "type": "string" },
            "conditions": {
                "type": "array", "items": condition,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            },
        }},
    }});
    let ready = r#".status.conditions[?(@.type=="Ready")].status"#;
    let definition = json!({
        "metadata": { "name": "lanes.example.io" },
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": { "plural": "lanes", "singular": "lane", "kind": "Lane", "shortNames": ["ln"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
                "selectableFields": [{ "jsonPath": ".spec.mode" }],
                "additionalPrinterColumns": [
                    { "name": "Gbps", "type": "integer", "jsonPath": ".spec.gbps" },
                    { "name": "Ready", "type": "string", "jsonPath": ready },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

/// One raw request: its status code and its body.
async fn call(client: &Client, method: &str, path: &str, kind: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    call_bytes(client, method, path, kind, body).await
}

async fn call_bytes(
    client: &Client,
    method: &str,
    path: &str,
    kind: &str,
    body: Vec<u8>,
) -> (u16, Value) {
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.unwrap();
    (
        code,
        serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes))),
    )
}

async fn get(client: &Client, path: &str) -> Value {
    let (code, body) = call(client, "GET", path, JSON, Value::Null).await;
    assert_eq!(code, 200, "{path}: {body}");
    body
}

async fn post(client: &Client, path: &str, body: Value) -> Value {
    let (code, body) = call(client, "POST", path, JSON, body).await;
    assert_eq!(code, 201, "{path}: {body}");
    body
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "app:1" }] },
    })
}

async fn create_pod(client: &Client, pod: Value) -> Pod {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "a": "1" } })).unwrap()
}

/// Code and reason of a kube-rs error.
fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String, String) {
    match result {
        Err(kube::Error::Api(status)) => {
            (status.code, status.reason.clone(), status.message.clone())
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}
