//! What `kubectl get` receives.

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::{create_pod, pod, post, start};

async fn get_as(client: &Client, form: &str, path: &str) -> Value {
    let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io,application/json");
    let request = http::Request::get(path).header("accept", accept);
    let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
    serde_json::from_slice(&response.into_body().collect_bytes().await.unwrap()).unwrap()
}

fn columns(table: &Value, priority: i64) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns = columns.filter(|column| column["priority"].as_i64() <= Some(priority));
    columns.map(|column| column["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pods_and_nodes_show_what_people_look_for() {
    let (_server, client) = start().await;
    create_pod(&client, pod("a")).await;
    let table = get_as(&client, "Table", "/api/v1/pods").await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(columns(&table, 0), ["Name", "Ready", "Status", "Restarts", "Age"]);
    assert!(columns(&table, 1).contains(&"Node"));
    let row = &table["rows"][0];
    assert_eq!(
        row["cells"].as_array().unwrap()[..4],
        [json!("a"), json!("0/1"), json!("Pending"), json!("0")]
    );
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["name"], "a");

    let ready = json!({ "type": "Ready", "status": "True" });
    let node = json!({
        "metadata": { "name": "n1", "labels": { "node-role.kubernetes.io/worker": "" } },
        "spec": { "unschedulable": true }, "status": { "conditions": [ready] },
    });
    post(&client, "/api/v1/nodes", node).await;
    let table = get_as(&client, "Table", "/api/v1/nodes/n1").await;
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..3], [json!("n1"), json!("Ready,SchedulingDisabled"), json!("worker")]);
}

#[tokio::test]
async fn custom_resources_show_their_printer_columns() {
    let (_server, client) = start().await;
    let lanes = "/apis/example.io/v1/namespaces/default/lanes";
    post(&client, lanes, json!({ "apiVersion": "example.io/v1", "kind": "Lane", "metadata": { "name": "a" }, "spec": { "gbps": 400 } })).await;
    let table = get_as(&client, "Table", lanes).await;
    assert_eq!(columns(&table, 0), ["Name", "Gbps", "Ready", "Age"]);
    assert_eq!(
        table["rows"][0]["cells"].as_array().unwrap()[..3],
        [json!("a"), json!(400), Value::Null]
    );
    let path = format!("{lanes}?includeObject=Object");
    assert_eq!(get_as(&client, "Table", &path).await["rows"][0]["object"]["kind"], "Lane");
}

#[tokio::test]
async fn metadata_alone_can_be_had() {
    let (_server, client) = start().await;
    create_pod(&client, pod("a")).await;
    let list = get_as(&client, "PartialObjectMetadataList", "/api/v1/pods").await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    assert_eq!(list["items"][0].get("spec"), None);
}
