use engine::Eviction;
use http::Method;
use kube::Client;
use model::{NodeName, ObjectKey, PodUid};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CALL_TIMEOUT, JSON, request};
use crate::clock::wall_clock;
use crate::tampering::Alarm;

/// The API server refuses longer messages.
const MESSAGE_BYTES_MAX: usize = 1024;

pub(crate) async fn write_event(client: &Client, event: &Value) -> Result<(), kube::Error> {
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let request = request(Method::POST, &path, JSON, event).map_err(kube::Error::HttpError)?;
    match timeout(CALL_TIMEOUT, client.request_text(request)).await {
        Ok(reply) => reply.map(|_| ()),
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// Something to tell about an object that is no Pod.
#[derive(Clone, Debug)]
pub struct Notice<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub is_warning: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

impl Notice<'_> {
    pub async fn write(&self, client: &Client) -> Result<(), kube::Error> {
        write_event(client, &self.event()).await
    }

    fn event(&self) -> Value {
        let (key, uid) = (ObjectKey::new(self.namespace, self.name), PodUid::new(self.uid));
        let event_type = if self.is_warning { "Warning" } else { "Normal" };
        let mut event = event(&key, &uid, event_type, self.reason, self.message);
        event["involvedObject"]["apiVersion"] = json!(self.api_version);
        event["involvedObject"]["kind"] = json!(self.kind);
        event
    }
}

pub(crate) fn scheduled(pod: &ObjectKey, uid: &PodUid, node: &NodeName) -> Value {
    let message = format!("Successfully assigned {pod} to {node}");
    event(pod, uid, "Normal", "Scheduled", &message)
}

pub(crate) fn failed_scheduling(pod: &ObjectKey, uid: &PodUid, message: &str) -> Value {
    event(pod, uid, "Warning", "FailedScheduling", message)
}

/// As kube-scheduler writes it: by the preemptor's UID, and with the preemptor as what it is about.
pub(crate) fn preempted(eviction: &Eviction) -> Value {
    let Eviction { victim, uid, node, preemptor, preemptor_uid, .. } = eviction;
    let message = format!("Preempted by pod {preemptor_uid} on node {node}");
    let mut event = event(victim, uid, "Normal", "Preempted", &message);
    event["action"] = json!("Preempting");
    event["related"] = reference(preemptor, preemptor_uid);
    event
}

pub(crate) fn tampered(alarm: &Alarm) -> Value {
    Notice {
        api_version: if alarm.of == "Pod" { "v1" } else { crds::API_VERSION },
        kind: alarm.of,
        namespace: &alarm.key.namespace,
        name: &alarm.key.name,
        uid: &alarm.uid,
        is_warning: true,
        reason: crds::TAMPERING_REASON,
        message: &format!("{}: {}", alarm.kind, alarm.message),
    }
    .event()
}

fn reference(pod: &ObjectKey, uid: &PodUid) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": &*pod.namespace,
        "name": &*pod.name,
        "uid": uid.as_str(),
    })
}

fn event(pod: &ObjectKey, uid: &PodUid, event_type: &str, reason: &str, message: &str) -> Value {
    let now = wall_clock();
    // As kubectl's own: unique for the Pod, and sorted by time.
    let name = format!("{}.{:x}", name_prefix(&pod.name), now.as_nanosecond());
    let at = format!("{now:.0}");
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": &*pod.namespace, "name": name},
        "involvedObject": reference(pod, uid),
        "type": event_type,
        "reason": reason,
        "message": shortened(message),
        "source": {"component": crds::SCHEDULER_NAME},
        "reportingComponent": crds::SCHEDULER_NAME,
        "reportingInstance": crds::SCHEDULER_NAME,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    })
}

/// Object names have at most 253 characters; the time takes 17 of them.
fn name_prefix(pod: &str) -> &str {
    const PREFIX_BYTES_MAX: usize = 230;
    pod.get(..PREFIX_BYTES_MAX).map_or(pod, |prefix| prefix.trim_end_matches(['.', '-']))
}

fn shortened(message: &str) -> String {
    const ELLIPSIS: &str = " ...";
    if message.len() <= MESSAGE_BYTES_MAX {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_where_kubernetes_would_refuse_them() {
        let long = "ä".repeat(1000);
        let event = failed_scheduling(&ObjectKey::new("a", &"p".repeat(253)), &"u".into(), &long);
        let message = event["message"].as_str().unwrap();
        assert!(message.len() <= MESSAGE_BYTES_MAX && message.ends_with("ä ..."));
        assert!(event["metadata"]["name"].as_str().unwrap().len() <= 253);
    }
    #[test]
    fn a_victim_learns_who_took_its_place() {
        let event = preempted(&Eviction {
            victim: ObjectKey::new("a", "v"),
            uid: "u".into(),
            step: engine::EvictionStep::Delete,
            node: "n1".into(),
            preemptor: ObjectKey::new("b", "p"),
            preemptor_uid: "w".into(),
        });
        assert_eq!(event["message"], "Preempted by pod w on node n1");
        assert_eq!(event["reason"], "Preempted");
        assert_eq!(event["involvedObject"]["name"], "v");
        assert_eq!(event["related"]["name"], "p");
    }
}
