use engine::Unschedulable;
use http::Method;
use kube::Client;
use model::NodeName;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CALL_TIMEOUT, STRATEGIC_MERGE, request};
use crate::clock::wall_clock;
use crate::wire::WirePod;

/// Writes `PodScheduled=False` and the Node that is being cleared for the Pod, and returns the Pod as it is then.
pub(crate) async fn write_condition(
    client: &Client,
    report: &Unschedulable,
) -> Result<WirePod, kube::Error> {
    let path =
        format!("/api/v1/namespaces/{}/pods/{}/status", report.pod.namespace, report.pod.name);
    let request = request(Method::PATCH, &path, STRATEGIC_MERGE, &patch(report))
        .map_err(kube::Error::HttpError)?;
    match timeout(CALL_TIMEOUT, client.request(request)).await {
        Ok(reply) => reply,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// UID and version are preconditions: neither a successor under the same name nor a Pod that has
/// been bound meanwhile gets a condition that it waits.
fn patch(report: &Unschedulable) -> Value {
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": report.reason.as_str(),
        "message": &*report.message,
    });
    // Only a transition moves the transition time.
    if report.first {
        condition["lastTransitionTime"] = json!(format!("{:.0}", wall_clock()));
    }
    // Always said: on the version that the decision was made of, saying the same changes nothing.
    let nominated = report.nominated_node.as_ref().map(NodeName::as_str);
    json!({
        "metadata": {"uid": report.uid.as_str(), "resourceVersion": &*report.resource_version},
        "status": {"conditions": [condition], "nominatedNodeName": nominated},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ConditionReason;
    use model::ObjectKey;

    fn report() -> Unschedulable {
        Unschedulable {
            pod: ObjectKey::new("a", "p"),
            uid: "u".into(),
            resource_version: "7".into(),
            reason: ConditionReason::Unschedulable,
            message: "m".into(),
            first: true,
            nominated_node: None,
        }
    }

    #[test]
    fn the_transition_time_moves_only_on_a_transition() {
        let mut report = report();
        let first = patch(&report);
        let time = first["status"]["conditions"][0]["lastTransitionTime"].as_str().unwrap();
        assert!(time.ends_with('Z') && !time.contains('.'), "{time}");
        report.first = false;
        let second = patch(&report);
        assert_eq!(second["status"]["conditions"][0].get("lastTransitionTime"), None);
        assert_eq!(second["metadata"]["uid"], "u");
        assert_eq!(second["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn the_nomination_is_set_or_cleared_in_the_same_write() {
        let mut report = report();
        assert_eq!(patch(&report)["status"].get("nominatedNodeName"), Some(&Value::Null));
        report.nominated_node = Some("n1".into());
        assert_eq!(patch(&report)["status"]["nominatedNodeName"], "n1");
    }
}
