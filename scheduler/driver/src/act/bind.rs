use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crds::annotations::{ATTESTATION_TICKET_HASH, CORRIDOR_ID, FFM_HANDLE, GRANT, LEADER};
use engine::Bind;
use http::Method;
use hyper_util::client::legacy::Error as ClientError;
use kube::Client;
use kube::core::Status;
use model::ObjectKind;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::event::shortened;
use super::{CALL_TIMEOUT, JSON, request, request_with};
use crate::binding::{Binding, Next, Outcome, PostReply, ReadReply, Refused};
use crate::election::is_not_leading;
use crate::run::Input;
use crate::translate::grant_text;
use crate::wire::WirePod;

/// How a Binding ended, and the Pod as it was last read, if it was.
#[derive(Debug)]
pub(crate) struct BindReport {
    pub bind: Bind,
    pub outcome: Outcome,
    pub read: Option<Box<WirePod>>,
}

/// The message of `config/admission/leader-fence.yaml` begins so, somewhere behind the API server's own.
const STALE_LEADER: &str = "stale leader ";

/// A webhook may answer with any length. What is kept of it stays in the engine, and fits into an Event.
const REFUSAL_BYTES_MAX: usize = 512;

/// Sends the Binding until its outcome is clear; an input reports when that takes more than one
/// call. `leader` is the replica that decided it.
pub(crate) async fn bind(
    client: Client,
    bind: Bind,
    leader: Option<Arc<str>>,
    inputs: &Sender<Input>,
) -> BindReport {
    let annotations = annotations(&bind, leader.as_deref());
    let body = body(&bind, &annotations);
    let mut binding = Binding::new();
    let mut read = None;
    let mut next = Next::Post { after: Duration::ZERO };
    loop {
        next = match next {
            Next::Settled(outcome) => return BindReport { bind, outcome, read },
            Next::Post { after } => {
                if !after.is_zero() {
                    sleep(after).await;
                }
                let reply = post(&client, &bind, &body).await;
                if matches!(
                    reply,
                    PostReply::Unsent | PostReply::Failed { .. } | PostReply::Unclear { .. }
                ) {
                    let _ = inputs.send(Input::BindUnclear(bind.uid.clone())).await;
                }
                binding.after_post(reply)
            }
            Next::Read { after } => {
                sleep(after).await;
                let (reply, pod) = read_pod(&client, &bind, &annotations).await;
                read = pod.map(Box::new).or(read);
                binding.after_read(&reply)
            }
        }
    }
}

/// What the API server writes on the Pod in the transaction that sets its Node.
fn annotations(bind: &Bind, leader: Option<&str>) -> BTreeMap<&'static str, String> {
    let mut annotations = BTreeMap::new();
    if let Some(leader) = leader {
        annotations.insert(LEADER, leader.to_owned());
    }
    if let Some(grant) = &bind.grant {
        annotations.insert(GRANT, grant_text(grant));
    }
    for (kind, handle) in &bind.handles {
        let annotation = match kind {
            ObjectKind::Corridor => CORRIDOR_ID,
            ObjectKind::MemoryBundle => FFM_HANDLE,
        };
        annotations.insert(annotation, handle.to_string());
    }
    if !bind.ticket_hashes.is_empty() {
        annotations.insert(ATTESTATION_TICKET_HASH, bind.ticket_hashes.join(","));
    }
    annotations
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BindingBody<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

fn body(bind: &Bind, annotations: &BTreeMap<&'static str, String>) -> Vec<u8> {
    let body = BindingBody {
        api_version: "v1",
        kind: "Binding",
        metadata: Metadata {
            namespace: &bind.pod.namespace,
            name: &bind.pod.name,
            uid: bind.uid.as_str(),
            resource_version: bind.resource_version.as_deref(),
            annotations,
        },
        target: Target { api_version: "v1", kind: "Node", name: bind.node.as_str() },
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

fn pod_path(bind: &Bind) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", bind.pod.namespace, bind.pod.name)
}

async fn post(client: &Client, bind: &Bind, body: &[u8]) -> PostReply {
    let path = format!("{}/binding", pod_path(bind));
    let request = match request_with(Method::POST, &path, JSON, body.to_vec()) {
        Ok(request) => request,
        Err(error) => {
            let refused = Refused { message: error.to_string(), is_conflict: false };
            return PostReply::Refused(refused);
        }
    };
    let reply = match timeout(CALL_TIMEOUT, client.request_text(request)).await {
        Ok(Ok(_)) => PostReply::Bound,
        Ok(Err(kube::Error::Api(status))) => answered(*status),
        Ok(Err(error)) if is_not_leading(&error) => PostReply::TermEnded,
        Ok(Err(error)) if is_unsent(&error) => PostReply::Unsent,
        Ok(Err(error)) => PostReply::Unclear { message: error.to_string(), retry_after: None },
        Err(_) => {
            let message = format!("no answer within {} s", CALL_TIMEOUT.as_secs());
            PostReply::Unclear { message, retry_after: None }
        }
    };
    if let PostReply::Failed { message, .. } | PostReply::Unclear { message, .. } = &reply {
        warn!(pod = %bind.pod, why = message, "no clear answer to a Binding; asking again");
    }
    reply
}

/// What the API server's own words mean. A code of a proxy before it has no reason of Kubernetes'.
fn answered(status: Status) -> PostReply {
    let Status { code, reason, message, details, .. } = status;
    let is_stale = code == 422 && message.contains(STALE_LEADER);
    let message = shortened(&message, REFUSAL_BYTES_MAX);
    let seconds = details.map_or(0, |details| details.retry_after_seconds);
    let retry_after = Some(Duration::from_secs(seconds.into()));
    match code {
        429 => PostReply::Failed { message, retry_after },
        500 if reason == "InternalError" => PostReply::Failed { message, retry_after },
        408 | 500.. => PostReply::Unclear { message, retry_after },
        422 if is_stale => PostReply::Fenced { message },
        _ => PostReply::Refused(Refused { message, is_conflict: code == 409 }),
    }
}

/// Whether there was no connection to send a call over.
fn is_unsent(error: &kube::Error) -> bool {
    let kube::Error::Service(cause) = error else { return false };
    cause.downcast_ref::<ClientError>().is_some_and(ClientError::is_connect)
}

/// A GET without resourceVersion is a quorum read.
async fn read_pod(
    client: &Client,
    bind: &Bind,
    annotations: &BTreeMap<&'static str, String>,
) -> (ReadReply, Option<WirePod>) {
    let Ok(request) = request(Method::GET, &pod_path(bind), JSON, &Value::Null) else {
        return (ReadReply::Gone, None);
    };
    let request = request.map(|_| Vec::new());
    match timeout(CALL_TIMEOUT, client.request::<WirePod>(request)).await {
        Ok(Ok(pod)) if pod.metadata.uid.as_deref() != Some(bind.uid.as_str()) => {
            (ReadReply::Gone, None)
        }
        Ok(Ok(pod)) => {
            let on_pod = pod.metadata.annotations.clone().unwrap_or_default();
            let as_decided = pod.spec.node_name == bind.node.as_str()
                && annotations.iter().all(|(key, value)| on_pod.get(*key) == Some(value));
            let reply = if as_decided { ReadReply::AsDecided } else { ReadReply::Otherwise };
            (reply, Some(pod))
        }
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => (ReadReply::Gone, None),
        Ok(Err(_)) | Err(_) => (ReadReply::Unclear, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Amount, Grant, Granted, ObjectKey, PodSpec};

    #[test]
    fn a_binding_carries_preconditions_and_the_grant() {
        let granted = Granted { uid: "c".into(), amount: Amount::from_whole(40) };
        let bind = Bind {
            pod: ObjectKey::new("a", "p"),
            uid: "u".into(),
            node: "n1".into(),
            spec: Arc::new(PodSpec {
                profile: crds::SCHEDULER_NAME.into(),
                namespace: "a".into(),
                scheduling: Arc::default(),
                needs: Vec::new(),
                failure_policy: None,
                hold: None,
            }),
            resource_version: Some("7".into()),
            handles: vec![
                (ObjectKind::Corridor, "cor-1".into()),
                (ObjectKind::MemoryBundle, "ffm-1".into()),
            ],
            ticket_hashes: vec!["aa".into(), "bb".into()],
            grant: Some(Grant { corridor: Some(granted), bundle: None }),
        };
        let body = body(&bind, &annotations(&bind, Some("host_1/7")));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["metadata"]["annotations"]["corridoros.io/leader"], "host_1/7");
        assert_eq!(body["metadata"]["uid"], "u");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["metadata"]["annotations"]["corridoros.io/corridorId"], "cor-1");
        assert_eq!(body["metadata"]["annotations"]["corridoros.io/ffmHandle"], "ffm-1");
        assert_eq!(
            body["metadata"]["annotations"]["corridoros.io/grant"],
            r#"{"v":1,"corridor":{"uid":"c","milliGbps":40000}}"#
        );
        let hashes = &body["metadata"]["annotations"]["corridoros.io/attestationTicketHash"];
        assert_eq!(hashes, "aa,bb");
        assert_eq!(body["target"]["name"], "n1");
    }

    #[test]
    fn words_of_any_length_are_cut_and_what_they_mean_is_not() {
        let status = |code: u16, message: String| {
            answered(Status { code, message, ..Status::failure("", "Invalid") })
        };
        let long = "x".repeat(100_000);
        let reply = status(403, long.clone());
        let PostReply::Refused(Refused { message, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!(message.len(), REFUSAL_BYTES_MAX);
        let reply = status(422, format!("{long}{STALE_LEADER}a/1"));
        assert!(matches!(reply, PostReply::Fenced { .. }), "{reply:?}");
    }
}
