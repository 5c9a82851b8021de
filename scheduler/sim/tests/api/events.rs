//! Events have two API groups and one set of objects.

use kube::Resource;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::json;

use crate::{create_pod, get, pod, post, start};

#[tokio::test]
async fn an_event_shows_under_both_groups() {
    let (_server, client) = start().await;
    let pod = create_pod(&client, pod("a")).await;
    let recorder = Recorder::new(client.clone(), Reporter::from("corridor-scheduler"));
    recorder.publish(&scheduled(), &pod.object_ref(&())).await.unwrap();

    let selector = "fieldSelector=involvedObject.name%3Da,involvedObject.kind%3DPod";
    let core = get(&client, &format!("/api/v1/namespaces/default/events?{selector}")).await;
    let event = &core["items"][0];
    assert_eq!(event["message"], "Successfully assigned default/a to n1");
    assert_eq!(event["involvedObject"]["uid"], json!(pod.metadata.uid));
    assert_eq!(event["reportingComponent"], "corridor-scheduler");
    let new = get(&client, "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Da").await;
    assert_eq!(new["items"][0]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(new["items"][0]["note"], event["message"]);
    assert_eq!(new["items"][0]["metadata"]["uid"], event["metadata"]["uid"]);
    assert_eq!(new["items"][0].get("message"), None);

    recorder.publish(&scheduled(), &pod.object_ref(&())).await.unwrap();
    let core = get(&client, &format!("/api/v1/namespaces/default/events?{selector}")).await;
    assert_eq!(core["items"].as_array().unwrap().len(), 1, "a repeated event becomes a series");
    assert_eq!(core["items"][0]["series"]["count"], 2);
}

fn scheduled() -> Event {
    Event {
        type_: EventType::Normal,
        reason: "Scheduled".to_owned(),
        note: Some("Successfully assigned default/a to n1".to_owned()),
        action: "Binding".to_owned(),
        secondary: None,
    }
}

#[tokio::test]
async fn an_old_style_event_is_readable_in_the_new_group() {
    let (_server, client) = start().await;
    let event = json!({
        "metadata": { "name": "a.1" }, "reason": "Held", "message": "short of 40 Gbps",
        "involvedObject": { "kind": "Pod", "name": "a", "namespace": "default" },
        "source": { "component": "corridor-scheduler" }, "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:05Z",
    });
    post(&client, "/api/v1/namespaces/default/events", event).await;
    let path = "/apis/events.k8s.io/v1/namespaces/default/events/a.1";
    let shown = get(&client, path).await;
    assert_eq!(shown["note"], "short of 40 Gbps");
    assert_eq!(shown["regarding"]["name"], "a");
    assert_eq!(shown["deprecatedCount"], 2);
}
