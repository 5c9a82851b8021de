//! The users of a Corridor or MemoryBundle, written into its status beside what its controller writes.

use engine::ObjectUsed;
use http::{Method, Request, header};
use jiff::Timestamp;
use kube::Client;
use model::ObjectKind;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CALL_TIMEOUT, Notice};
use crate::tracker::version_number;

/// A condition of ours, with the time since when it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub name: &'static str,
    pub status: bool,
    pub since: Timestamp,
}

/// The conditions that an object's use gives it, each with its old time unless it has changed.
///
/// Whether it is drained is said of what is being released; and denied for good where it once stood,
/// `has_stray`, though this scheduler never set it. It cannot be removed: its writer owns a part of it, that part would
/// stay, and the API server would refuse the rest.
pub(crate) fn conditions(
    used: &ObjectUsed,
    before: &[Condition],
    has_stray: bool,
    now: Timestamp,
) -> Vec<Condition> {
    let facts = &used.facts;
    let stands = has_stray || before.iter().any(|it| it.name == crds::condition::DRAINED);
    let told = [
        (crds::condition::IN_USE, Some(facts.in_use > 0)),
        (crds::condition::DRAINED, facts.drained.or(stands.then_some(false))),
        (crds::condition::OVERSUBSCRIBED, Some(facts.oversubscribed)),
    ];
    let since = |name: &str, status: bool| {
        let same = |it: &&Condition| it.name == name && it.status == status;
        before.iter().find(same).map_or(now, |condition| condition.since)
    };
    told.into_iter()
        .filter_map(|(name, status)| {
            let status = status?;
            Some(Condition { name, status, since: since(name, status) })
        })
        .collect()
}

/// Whether it is oversubscribed, and was not before.
pub(crate) fn is_newly_oversubscribed(before: &[Condition], now: &[Condition]) -> bool {
    let is = |all: &[Condition]| {
        all.iter().any(|it| it.name == crds::condition::OVERSUBSCRIBED && it.status)
    };
    is(now) && !is(before)
}

/// The Event on the object then.
pub(crate) fn oversubscribed(used: &ObjectUsed) -> Notice<'_> {
    Notice {
        api_version: crds::API_VERSION,
        kind: names(used.object.kind).0,
        namespace: &used.object.key.namespace,
        name: &used.object.key.name,
        uid: used.uid.as_str(),
        is_warning: true,
        reason: crds::condition::OVERSUBSCRIBED,
        message: OVERSUBSCRIBED_MESSAGE,
    }
}

const OVERSUBSCRIBED_MESSAGE: &str =
    "Pods have reserved more than its floor is now; they stay, and no other is let in";

/// Server-side apply: the controller's fields are not ours to touch. Returns the object's version as
/// this leaves it.
pub(crate) async fn write_use(
    client: &Client,
    used: &ObjectUsed,
    conditions: &[Condition],
) -> Result<u64, kube::Error> {
    let (_, plural) = names(used.object.kind);
    let key = &used.object.key;
    let uri = format!(
        "/apis/{}/{}/namespaces/{}/{plural}/{}/status?fieldManager={}&force=true",
        crds::GROUP,
        crds::VERSION,
        key.namespace,
        key.name,
        crds::DRIVER_MANAGER,
    );
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(uri)
        .header(header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(body(used, conditions).to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    match timeout(CALL_TIMEOUT, client.request::<Applied>(request)).await {
        // One that is no number cannot be compared: nothing that is seen counts as later.
        Ok(reply) => {
            reply.map(|it| version_number(Some(&it.metadata.resource_version)).unwrap_or(u64::MAX))
        }
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// The reply, as far as it is of interest.
#[derive(Deserialize)]
struct Applied {
    metadata: AppliedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AppliedMetadata {
    resource_version: String,
}

fn names(kind: ObjectKind) -> (&'static str, &'static str) {
    match kind {
        ObjectKind::Corridor => ("Corridor", "corridors"),
        ObjectKind::MemoryBundle => ("MemoryBundle", "memorybundles"),
    }
}

/// The UID is a precondition: a successor under the same name has other users.
fn body(used: &ObjectUsed, conditions: &[Condition]) -> Value {
    let (kind, _) = names(used.object.kind);
    let facts = &used.facts;
    let users = facts.in_use_by.iter().map(
        |(key, uid)| json!({"namespace": &*key.namespace, "name": &*key.name, "uid": uid.as_str()}),
    );
    let conditions = conditions.iter().map(|condition| {
        json!({
            "type": condition.name,
            "status": if condition.status { "True" } else { "False" },
            "reason": reason(condition),
            "message": message(condition, facts.in_use),
            "observedGeneration": facts.generation,
            "lastTransitionTime": format!("{:.0}", condition.since),
        })
    });
    json!({
        "apiVersion": format!("{}/{}", crds::GROUP, crds::VERSION),
        "kind": kind,
        "metadata": {
            "namespace": &*used.object.key.namespace,
            "name": &*used.object.key.name,
            "uid": used.uid.as_str(),
        },
        "status": {
            "inUse": facts.in_use,
            "inUseBy": users.collect::<Vec<_>>(),
            "conditions": conditions.collect::<Vec<_>>(),
        },
    })
}

fn reason(condition: &Condition) -> &'static str {
    match (condition.name, condition.status) {
        (crds::condition::IN_USE, true) | (crds::condition::DRAINED, false) => "PodsBound",
        (crds::condition::IN_USE, false) | (crds::condition::DRAINED, true) => "NothingBound",
        (_, true) => "ReservedAboveCapacity",
        (_, false) => "WithinCapacity",
    }
}

fn message(condition: &Condition, in_use: usize) -> String {
    let pods = match in_use {
        0 => "no Pod is bound with it".to_owned(),
        1 => "1 Pod is bound with it".to_owned(),
        pods => format!("{pods} Pods are bound with it"),
    };
    match (condition.name, condition.status) {
        (crds::condition::IN_USE | crds::condition::DRAINED, _) => pods,
        (_, true) => OVERSUBSCRIBED_MESSAGE.to_owned(),
        (_, false) => "what Pods have reserved fits into its floor".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Facts;
    use model::{ObjectKey, ObjectRef};

    fn used(in_use: usize, drained: Option<bool>) -> ObjectUsed {
        let facts = Facts {
            generation: 3,
            in_use,
            in_use_by: vec![(ObjectKey::new("a", "p"), "u".into())],
            drained,
            oversubscribed: false,
        };
        let key = ObjectKey::new("a", "c1");
        ObjectUsed { object: ObjectRef { kind: ObjectKind::Corridor, key }, uid: "c".into(), facts }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let first = conditions(&used(1, None), &[], false, at(10));
        assert_eq!(first.len(), 2, "drained is told only of what is being released");
        let second = conditions(&used(1, Some(false)), &first, false, at(20));
        let times: Vec<i64> = second.iter().map(|it| it.since.as_second()).collect();
        assert_eq!(times, [10, 20, 10]);
        let third = conditions(&used(0, Some(true)), &second, false, at(30));
        let times: Vec<i64> = third.iter().map(|it| it.since.as_second()).collect();
        assert_eq!(times, [30, 30, 10]);
        let stray = conditions(&used(1, None), &first, true, at(40));
        let drained = stray.iter().find(|it| it.name == crds::condition::DRAINED).unwrap();
        assert!(!drained.status && conditions(&used(1, None), &stray, false, at(50)).len() == 3);
    }

    #[test]
    fn names_users_and_carries_the_generation() {
        let used = used(1, Some(false));
        let body = body(&used, &conditions(&used, &[], false, at(10)));
        assert_eq!(body["status"]["inUse"], 1);
        assert_eq!(body["status"]["inUseBy"][0]["name"], "p");
        assert_eq!(body["status"]["conditions"][1]["type"], "Drained");
        assert_eq!(body["status"]["conditions"][1]["observedGeneration"], 3);
        assert_eq!(body["metadata"]["uid"], "c");
    }
}
