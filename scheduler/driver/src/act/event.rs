use std::borrow::Cow;
use std::sync::Arc;

use engine::Eviction;
use http::Method;
use kube::Client;
use model::{NodeName, ObjectKey, PodUid};
use serde::Serialize;
use tokio::time::timeout;

use super::{CALL_TIMEOUT, JSON, request_with};
use crate::clock::wall_clock;
use crate::tampering::{Alarm, NO_EFFECT_REASON};

/// The API server refuses longer messages.
const MESSAGE_BYTES_MAX: usize = 1024;

/// An Event as it is written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventBody {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    involved_object: Reference,
    #[serde(rename = "type")]
    event_type: &'static str,
    reason: Cow<'static, str>,
    message: String,
    source: Source,
    reporting_component: &'static str,
    reporting_instance: &'static str,
    first_timestamp: String,
    last_timestamp: String,
    count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Reference>,
}

#[derive(Clone, Debug, Serialize)]
struct Metadata {
    namespace: Arc<str>,
    name: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    api_version: Cow<'static, str>,
    kind: Cow<'static, str>,
    namespace: Arc<str>,
    name: Arc<str>,
    uid: PodUid,
}

#[derive(Clone, Debug, Serialize)]
struct Source {
    component: &'static str,
}

pub(crate) async fn write_event(client: &Client, event: &EventBody) -> Result<(), kube::Error> {
    let path = format!("/api/v1/namespaces/{}/events", event.metadata.namespace);
    let body = serde_json::to_vec(event).map_err(kube::Error::SerdeError)?;
    let request = request_with(Method::POST, &path, JSON, body).map_err(kube::Error::HttpError)?;
    match timeout(CALL_TIMEOUT, client.request_text(request)).await {
        Ok(reply) => reply.map(|_| ()),
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// An Event about an object that is no Pod.
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

    fn event(&self) -> EventBody {
        let (key, uid) = (ObjectKey::new(self.namespace, self.name), PodUid::new(self.uid));
        let event_type = if self.is_warning { "Warning" } else { "Normal" };
        let reason = self.reason.to_owned().into();
        let mut event = event(&key, &uid, event_type, reason, self.message);
        event.involved_object.api_version = self.api_version.to_owned().into();
        event.involved_object.kind = self.kind.to_owned().into();
        event
    }
}

pub(crate) fn scheduled(pod: &ObjectKey, uid: &PodUid, node: &NodeName) -> EventBody {
    let message = format!("Successfully assigned {pod} to {node}");
    event(pod, uid, "Normal", "Scheduled".into(), &message)
}

pub(crate) fn failed_scheduling(pod: &ObjectKey, uid: &PodUid, message: &str) -> EventBody {
    event(pod, uid, "Warning", "FailedScheduling".into(), message)
}

/// As kube-scheduler writes it: by the preemptor's UID, and with the preemptor as what it is about.
pub(crate) fn preempted(eviction: &Eviction) -> EventBody {
    let Eviction { victim, uid, node, preemptor, preemptor_uid, .. } = eviction;
    let message = format!("Preempted by pod {preemptor_uid} on node {node}");
    let mut event = event(victim, uid, "Normal", "Preempted".into(), &message);
    event.action = Some("Preempting");
    event.related = Some(reference(preemptor, preemptor_uid));
    event
}

pub(crate) fn tampered(alarm: &Alarm) -> EventBody {
    Notice {
        api_version: if alarm.of == "Pod" { "v1" } else { crds::API_VERSION },
        kind: alarm.of,
        namespace: &alarm.key.namespace,
        name: &alarm.key.name,
        uid: &alarm.uid,
        is_warning: true,
        reason: own_writes::TAMPERING_REASON,
        message: &format!("{}: {}", alarm.kind, alarm.message),
    }
    .event()
}

pub(crate) fn without_effect(notice: &crate::tampering::Notice) -> EventBody {
    event(&notice.pod, &notice.uid, "Warning", NO_EFFECT_REASON.into(), notice.message)
}

fn reference(pod: &ObjectKey, uid: &PodUid) -> Reference {
    Reference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: uid.clone(),
    }
}

fn event(
    pod: &ObjectKey,
    uid: &PodUid,
    event_type: &'static str,
    reason: Cow<'static, str>,
    message: &str,
) -> EventBody {
    let now = wall_clock();
    // As kubectl's own: unique for the Pod, and sorted by time.
    let name = format!("{}.{:x}", name_prefix(&pod.name), now.as_nanosecond());
    let at = format!("{now:.0}");
    EventBody {
        api_version: "v1",
        kind: "Event",
        metadata: Metadata { namespace: pod.namespace.clone(), name },
        involved_object: reference(pod, uid),
        event_type,
        reason,
        message: shortened(message, MESSAGE_BYTES_MAX),
        source: Source { component: crds::SCHEDULER_NAME },
        reporting_component: crds::SCHEDULER_NAME,
        reporting_instance: crds::SCHEDULER_NAME,
        first_timestamp: at.clone(),
        last_timestamp: at,
        count: 1,
        action: None,
        related: None,
    }
}

/// Object names have at most 253 characters; the time takes 17 of them.
fn name_prefix(pod: &str) -> &str {
    const PREFIX_BYTES_MAX: usize = 230;
    pod.get(..PREFIX_BYTES_MAX).map_or(pod, |prefix| prefix.trim_end_matches(['.', '-']))
}

/// At most so many bytes of it.
pub(super) fn shortened(message: &str, bytes_max: usize) -> String {
    const ELLIPSIS: &str = " ...";
    if message.len() <= bytes_max {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(bytes_max - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_where_kubernetes_would_refuse_them() {
        let long = "ä".repeat(1000);
        let event = failed_scheduling(&ObjectKey::new("a", &"p".repeat(253)), &"u".into(), &long);
        let event = serde_json::to_value(event).unwrap();
        let message = event["message"].as_str().unwrap();
        assert!(message.len() <= MESSAGE_BYTES_MAX && message.ends_with("ä ..."));
        assert!(event["metadata"]["name"].as_str().unwrap().len() <= 253);
    }
    #[test]
    fn a_victim_learns_which_pod_took_its_place() {
        let event = preempted(&Eviction {
            victim: ObjectKey::new("a", "v"),
            uid: "u".into(),
            step: engine::EvictionStep::Delete,
            node: "n1".into(),
            preemptor: ObjectKey::new("b", "p"),
            preemptor_uid: "w".into(),
        });
        let event = serde_json::to_value(event).unwrap();
        assert_eq!(event["message"], "Preempted by pod w on node n1");
        assert_eq!(event["reason"], "Preempted");
        assert_eq!(event["involvedObject"]["name"], "v");
        assert_eq!(event["related"]["name"], "p");
    }
}
