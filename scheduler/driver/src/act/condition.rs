use http::Method;
use kube::Client;
use model::{ObjectKey, PodUid};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CALL_TIMEOUT, request};
use crate::clock::wall_clock;
use crate::wire::WirePod;

/// Writes `PodScheduled=False`, and returns the Pod as it is then.
///
/// `transition` when the Pod had no such condition: only then does its transition time move.
pub(crate) async fn write_condition(
    client: &Client,
    pod: &ObjectKey,
    uid: &PodUid,
    message: &str,
    transition: bool,
) -> Result<WirePod, kube::Error> {
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
    let body = patch(uid, message, transition);
    let request =
        request(Method::PATCH, &path, STRATEGIC_MERGE, &body).map_err(kube::Error::HttpError)?;
    match timeout(CALL_TIMEOUT, client.request(request)).await {
        Ok(reply) => reply,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

/// The UID in the patch is a precondition: a successor under the same name is not told.
fn patch(uid: &PodUid, message: &str, transition: bool) -> Value {
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    });
    if transition {
        condition["lastTransitionTime"] = json!(format!("{:.0}", wall_clock()));
    }
    json!({"metadata": {"uid": uid.as_str()}, "status": {"conditions": [condition]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_moves_only_on_a_transition() {
        let first = patch(&"u".into(), "m", true);
        let time = first["status"]["conditions"][0]["lastTransitionTime"].as_str().unwrap();
        assert!(time.ends_with('Z') && !time.contains('.'), "{time}");
        let second = patch(&"u".into(), "m", false);
        assert_eq!(second["status"]["conditions"][0].get("lastTransitionTime"), None);
        assert_eq!(second["metadata"]["uid"], "u");
    }
}
