use engine::Held;
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CALL_TIMEOUT, request};
use crate::clock::wall_clock;
use crate::wire::WirePod;

/// Writes `PodScheduled=False`, and returns the Pod as it is then.
pub(crate) async fn write_condition(client: &Client, held: &Held) -> Result<WirePod, kube::Error> {
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", held.pod.namespace, held.pod.name);
    let request = request(Method::PATCH, &path, STRATEGIC_MERGE, &patch(held))
        .map_err(kube::Error::HttpError)?;
    match timeout(CALL_TIMEOUT, client.request(request)).await {
        Ok(reply) => reply,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

/// UID and version are preconditions: neither a successor under the same name nor a Pod that has
/// been bound meanwhile is told that it waits.
fn patch(held: &Held) -> Value {
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": &*held.message,
    });
    // Only a transition moves the transition time.
    if held.first {
        condition["lastTransitionTime"] = json!(format!("{:.0}", wall_clock()));
    }
    json!({
        "metadata": {"uid": held.uid.as_str(), "resourceVersion": &*held.resource_version},
        "status": {"conditions": [condition]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ObjectKey;

    #[test]
    fn the_transition_time_moves_only_on_a_transition() {
        let mut held = Held {
            pod: ObjectKey::new("a", "p"),
            uid: "u".into(),
            resource_version: "7".into(),
            message: "m".into(),
            nominated_node: None,
            first: true,
        };
        let first = patch(&held);
        let time = first["status"]["conditions"][0]["lastTransitionTime"].as_str().unwrap();
        assert!(time.ends_with('Z') && !time.contains('.'), "{time}");
        held.first = false;
        let second = patch(&held);
        assert_eq!(second["status"]["conditions"][0].get("lastTransitionTime"), None);
        assert_eq!(second["metadata"]["uid"], "u");
        assert_eq!(second["metadata"]["resourceVersion"], "7");
    }
}
