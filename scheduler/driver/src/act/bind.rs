//! Binds a Pod to its Node.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::annotations::{ATTESTATION_TICKET_HASH, CORRIDOR_ID, FFM_HANDLE, GRANT, LEADER};
use engine::Bind;
use http::Method;
use kube::Client;
use model::ObjectKind;
use serde::Serialize;
use tokio::sync::mpsc::Sender;
use tracing::warn;

use super::settle::{Write, read_object, settle, write};
use super::{JSON, request_with};
use crate::run::Input;
use crate::settling::{Outcome, Patience, ReadReply, WRITES_MAX, WriteReply};
use crate::translate::grant_text;
use crate::wire::WirePod;

/// How a Binding ended, and the Pod as it was last read, if it was.
#[derive(Debug)]
pub(crate) struct BindReport {
    pub bind: Bind,
    pub outcome: Outcome,
    pub read: Option<Box<WirePod>>,
}

/// Its room is given to others when it is given back, so no call of it may land later.
const PATIENCE: Patience =
    Patience { writes_max: WRITES_MAX, reads_max: None, waits_for_late: true };

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
    let mut binding = Binding { client, bind, annotations, body, inputs, read: None };
    let outcome = settle(&mut binding, PATIENCE).await;
    BindReport { bind: binding.bind, outcome, read: binding.read }
}

struct Binding<'a> {
    client: Client,
    bind: Bind,
    annotations: BTreeMap<&'static str, String>,
    body: Vec<u8>,
    inputs: &'a Sender<Input>,
    /// The Pod as it was last read.
    read: Option<Box<WirePod>>,
}

impl Write for Binding<'_> {
    async fn write(&mut self) -> WriteReply {
        let path = format!("{}/binding", pod_path(&self.bind));
        write(&self.client, request_with(Method::POST, &path, JSON, self.body.clone())).await
    }

    async fn read(&mut self) -> ReadReply {
        let Self { bind, annotations, .. } = self;
        let is_as_written = |pod: &WirePod| {
            let on_pod = pod.metadata.annotations.as_ref();
            let has = |(key, value): (&&str, &String)| {
                on_pod.and_then(|on_pod| on_pod.get(*key)) == Some(value)
            };
            pod.spec.node_name == bind.node.as_str() && annotations.iter().all(has)
        };
        let (reply, pod) =
            read_object(&self.client, &pod_path(bind), bind.uid.as_str(), is_as_written).await;
        self.read = pod.map(Box::new).or(self.read.take());
        reply
    }

    async fn unclear(&mut self, message: Option<&str>) {
        if let Some(why) = message {
            warn!(pod = %self.bind.pod, why, "no clear answer to a Binding; asking again");
        }
        let _ = self.inputs.send(Input::BindUnclear(self.bind.uid.clone())).await;
    }
}

impl BindReport {
    /// For a metric.
    pub fn label(&self) -> &'static str {
        match self.outcome {
            Outcome::Done => "bound",
            Outcome::Refused { .. } => "refused",
            Outcome::StaleLeader { .. } => "fenced",
            Outcome::TermEnded => "term_ended",
            Outcome::Gone => "gone",
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

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
                volumes: Arc::default(),
                resource_claims: Arc::default(),
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
}
