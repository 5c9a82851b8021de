//! The custom resources on a real API server: what it refuses, what it lets change, what kubectl shows.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::fs;

use e2e::ControlPlane;
use e2e::control_plane::CONFIG_DIR;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const VERSION: &str = "v1alpha1";
const GROUP: &str = "corridoros.io";

#[derive(Deserialize)]
struct BadSpec {
    name: String,
    /// Part of the message it is refused with.
    field: String,
    object: Value,
}

#[derive(Deserialize)]
struct Change {
    name: String,
    kind: String,
    start: Value,
    /// A JSON merge patch of `start`.
    patch: Value,
    allowed: bool,
    /// Part of the message it is refused with.
    message: Option<String>,
}

/// One for all tests of this file. It ends with the process: see `hygiene.rs`.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(|| async {
            let plane = ControlPlane::start().await.unwrap();
            plane.install_crds().await.unwrap();
            plane
        })
        .await
}

async fn with_namespace(name: &str) -> (&'static ControlPlane, Client) {
    let plane = control_plane().await;
    plane.kubectl(&["create", "namespace", name]).await.unwrap();
    (plane, plane.admin())
}

fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = format!("{}/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let cases: Vec<T> = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(!cases.is_empty(), "{path} has no cases");
    cases
}

fn objects_of(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

fn object(kind: &str, name: &str, spec: &Value) -> DynamicObject {
    let object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": kind,
        "metadata": { "name": name },
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// What the API server says against it, if it does.
fn refusal<T>(outcome: Result<T, kube::Error>) -> Option<String> {
    match outcome {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message),
        Err(other) => panic!("no answer of the API server: {other}"),
    }
}

fn assert_no_problems(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn bad_specs_are_refused_by_field() {
    let (_, client) = with_namespace("bad-specs").await;
    let mut problems = vec![];
    for BadSpec { name, field, object } in cases("bad-specs.yaml") {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created =
            objects_of(&client, "bad-specs", &kind).create(&PostParams::default(), &object).await;
        match refusal(created) {
            None => problems.push(format!("{name}: accepted")),
            Some(message) if message.contains(&field) => {}
            Some(message) => problems.push(format!("{name}: no {field:?} in: {message}")),
        }
    }
    assert_no_problems(&problems);
}

#[tokio::test]
async fn changes_are_allowed_or_refused_as_promised() {
    let (_, client) = with_namespace("changes").await;
    let mut problems = vec![];
    for Change { name, kind, start, patch, allowed, message } in cases("changes.yaml") {
        let api = objects_of(&client, "changes", &kind);
        let start = object(&kind, &name, &start);
        if let Some(refused) = refusal(api.create(&PostParams::default(), &start).await) {
            problems.push(format!("{name}: its start was refused: {refused}"));
            continue;
        }
        let patch = Patch::Merge(json!({ "spec": patch }));
        let refused = refusal(api.patch(&name, &PatchParams::default(), &patch).await);
        let expected = message.unwrap_or_default();
        match (allowed, refused) {
            (true, None) => {}
            (true, Some(refused)) => problems.push(format!("{name}: refused: {refused}")),
            (false, None) => problems.push(format!("{name}: allowed")),
            (false, Some(refused)) if refused.contains(&expected) => {}
            (false, Some(refused)) => {
                problems.push(format!("{name}: no {expected:?} in: {refused}"));
            }
        }
    }
    assert_no_problems(&problems);
}

#[tokio::test]
async fn samples_are_accepted() {
    let plane = control_plane().await;
    let samples = format!("{CONFIG_DIR}/samples");
    // Strict: a field that the API server does not know is a mistake in the sample.
    let apply = ["apply", "--server-side", "--validate=strict", "--filename", &samples];
    let applied = plane.kubectl(&apply).await.unwrap();
    let files = fs::read_dir(&samples).unwrap().count();
    assert!(applied.lines().count() >= files, "{files} files, but only:\n{applied}");
}

#[tokio::test]
async fn kubectl_shows_what_matters_of_a_corridor() {
    let (plane, client) = with_namespace("columns").await;
    let corridors = objects_of(&client, "columns", "Corridor");
    let spec = json!({ "lanes": 2, "lambdaNm": [1550, 1551], "minGbps": 100 });
    let corridor = object("Corridor", "c1", &spec);
    corridors.create(&PostParams::default(), &corridor).await.unwrap();
    let status = json!({ "status": { "phase": "Ready", "achievableGbps": 120.5 } });
    corridors.patch_status("c1", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    let table = plane.kubectl(&["get", "cor", "--namespace", "columns"]).await.unwrap();
    let mut lines = table.lines();
    let header = lines.next().unwrap();
    for column in ["NAME", "PHASE", "FLOOR", "ACHIEVABLE", "AGE"] {
        assert!(header.contains(column), "no column {column} in:\n{table}");
    }
    let row = lines.next().unwrap();
    for value in ["c1", "Ready", "100", "120.5"] {
        assert!(row.contains(value), "no {value} in:\n{table}");
    }
}
