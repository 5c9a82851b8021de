use std::sync::Arc;

use crds::annotations::{EXPECTED_END, GRANT};
use jiff::Timestamp;
use model::{
    Assignment, DeclaredBy, DeclaredEnd, Deletion, FailurePolicy, Hold, Need, NodeName, Pod,
    PodRequests, PodSpec, PodUid, Shape, Toleration, TolerationOperator,
};

use super::grant::parse_grant;
use super::needs::{failure_policy, needs};
use super::node::effect;
use super::requests::{Unrequested, requests};
use super::unsupported::unsupported_field;
use super::{key, labels};
use crate::wire::{WirePod, WireToleration};

/// `None` for a Pod that does not concern us: another scheduler's that is not on a Node yet.
pub(crate) fn pod(wire: WirePod) -> Option<Pod> {
    let assignment = assignment(&wire)?;
    let (uid, resource_version) =
        (wire.metadata.uid.clone()?, wire.metadata.resource_version.clone()?);
    let key = key(&wire.metadata);
    let created = wire.metadata.creation_timestamp.as_ref();
    let waiting = matches!(assignment, Assignment::Waiting | Assignment::Gated { .. });
    let asked = if waiting { asked(&wire) } else { Asked::default() };
    let shape = Shape {
        priority: wire.spec.priority.unwrap_or(0),
        requests: PodRequests {
            asked: requests(&wire, Unrequested::CountsNothing),
            held: requests(&wire, Unrequested::CountsNothing),
            held_in_scores: requests(&wire, Unrequested::CountsDefaults),
            asked_in_scores: requests(&wire, Unrequested::CountsDefaults),
        },
        tolerations: wire.spec.tolerations.iter().filter_map(toleration).collect(),
        node_selector: labels(wire.spec.node_selector.clone()),
        ..Shape::default()
    };
    let declared_end = declared_end(&wire);
    let shape = Arc::new(shape);
    let unscheduled = wire.status.conditions.into_iter().find(|condition| {
        condition.condition_type == "PodScheduled" && condition.status == "False"
    });
    Some(Pod {
        spec: Arc::new(PodSpec {
            namespace: key.namespace.clone(),
            shape,
            needs: asked.needs,
            failure_policy: asked.failure_policy,
            hold: asked.hold,
        }),
        key,
        uid: PodUid::new(&uid),
        resource_version: resource_version.into(),
        created_at_unix_s: created.map_or(0, |time| time.0.as_second()),
        assignment,
        condition_message: unscheduled.map(|condition| condition.message.into()),
        declared_end,
        nominated_node: None,
        started_at_unix_s: None,
        deletion: Deletion::None,
    })
}

/// The annotation, unless the kubelet ends the Pod before. One that cannot be read declares nothing.
fn declared_end(wire: &WirePod) -> Option<DeclaredEnd> {
    let annotation = wire.metadata.annotations.as_ref().and_then(|it| it.get(EXPECTED_END));
    let expected = annotation.and_then(|text| text.parse::<Timestamp>().ok());
    let expected =
        expected.map(|at| DeclaredEnd { at_unix_s: at.as_second(), by: DeclaredBy::ExpectedEnd });
    let started = wire.status.start_time.as_ref().map(|it| it.0.as_second());
    let deadline = started.zip(wire.spec.active_deadline_seconds).map(|(started, seconds)| {
        DeclaredEnd { at_unix_s: started.saturating_add(seconds), by: DeclaredBy::ActiveDeadline }
    });
    [deadline, expected].into_iter().flatten().min_by_key(|end| end.at_unix_s)
}

fn assignment(wire: &WirePod) -> Option<Assignment> {
    let (spec, status) = (&wire.spec, &wire.status);
    if matches!(status.phase.as_str(), "Succeeded" | "Failed") {
        return Some(Assignment::Finished);
    }
    if !spec.node_name.is_empty() {
        // Only our own Bindings grant anything.
        let annotations = wire.metadata.annotations.as_ref();
        let annotations = annotations.filter(|_| spec.scheduler_name == crds::SCHEDULER_NAME);
        let grant = annotations.and_then(|annotations| annotations.get(GRANT));
        let grant = grant.and_then(|text| parse_grant(text));
        return Some(Assignment::Bound { node: NodeName::new(&spec.node_name), grant });
    }
    if spec.scheduler_name != crds::SCHEDULER_NAME {
        return None;
    }
    if wire.metadata.deletion_timestamp.is_some() {
        return Some(Assignment::Leaving);
    }
    let gates: Vec<Arc<str>> =
        spec.scheduling_gates.iter().map(|gate| gate.name.as_str().into()).collect();
    Some(if gates.is_empty() { Assignment::Waiting } else { Assignment::Gated { gates } })
}

/// What the annotations ask for, and what keeps the Pod from being placed whatever they ask.
#[derive(Default)]
struct Asked {
    needs: Vec<Need>,
    failure_policy: Option<FailurePolicy>,
    hold: Option<Hold>,
}

fn asked(wire: &WirePod) -> Asked {
    let annotations = wire.metadata.annotations.clone().unwrap_or_default();
    let unsupported = unsupported_field(&wire.spec).map(|field| Hold::UnsupportedFeature { field });
    match (needs(&annotations), failure_policy(&annotations)) {
        (Ok(needs), Ok(failure_policy)) => Asked { needs, failure_policy, hold: unsupported },
        (Err(hold), _) | (_, Err(hold)) => Asked { hold: Some(hold), ..Asked::default() },
    }
}

fn toleration(wire: &WireToleration) -> Option<Toleration> {
    let effect = match wire.effect.as_str() {
        "" => None,
        text => Some(effect(text)?),
    };
    let operator = match wire.operator.as_str() {
        "" | "Equal" => TolerationOperator::Equal,
        "Exists" => TolerationOperator::Exists,
        _ => TolerationOperator::Unknown,
    };
    let (key, value) = (wire.key.as_str().into(), wire.value.as_str().into());
    Some(Toleration { key, operator, value, effect })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn wire(change: impl FnOnce(&mut Value)) -> Option<Pod> {
        let mut object = json!({
            "metadata": {
                "namespace": "a", "name": "p", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"other.io/x": "y"},
            },
            "spec": {
                "schedulerName": "corridor-scheduler",
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            "status": {"phase": "Pending"},
        });
        change(&mut object);
        pod(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn ours_wait_and_others_do_not_concern_us_until_they_are_bound() {
        assert_eq!(wire(|_| {}).unwrap().assignment, Assignment::Waiting);
        let other =
            |object: &mut Value| object["spec"]["schedulerName"] = json!("default-scheduler");
        assert_eq!(wire(other), None);
        let bound = wire(|object| {
            other(object);
            object["spec"]["nodeName"] = json!("n1");
        });
        let expected = Assignment::Bound { node: "n1".into(), grant: None };
        assert_eq!(bound.unwrap().assignment, expected);
    }

    #[test]
    fn the_earlier_of_two_declared_ends_counts() {
        let end = |expected: &str, deadline: Option<i64>| {
            let pod = wire(|object| {
                object["metadata"]["annotations"] = json!({"corridoros.io/expectedEnd": expected});
                object["spec"]["activeDeadlineSeconds"] = json!(deadline);
                object["status"]["startTime"] = json!("1970-01-01T00:00:10Z");
            });
            pod.unwrap().declared_end.map(|end| (end.at_unix_s, end.by))
        };
        let expected = Some((90, DeclaredBy::ExpectedEnd));
        assert_eq!(end("1970-01-01T00:01:30Z", None), expected);
        assert_eq!(end("1970-01-01T00:01:30Z", Some(100)), expected);
        assert_eq!(end("1970-01-01T00:01:30Z", Some(5)), Some((15, DeclaredBy::ActiveDeadline)));
        assert_eq!(end("tomorrow", None), None);
    }

    #[test]
    fn gates_and_deletion_put_a_pod_off_and_an_end_ends_it() {
        let gated = wire(|object| object["spec"]["schedulingGates"] = json!([{"name": "g"}]));
        assert_eq!(gated.unwrap().assignment, Assignment::Gated { gates: vec!["g".into()] });
        let leaving = wire(|object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        assert_eq!(leaving.unwrap().assignment, Assignment::Leaving);
        let ended = wire(|object| {
            object["spec"]["nodeName"] = json!("n1");
            object["status"]["phase"] = json!("Succeeded");
        });
        assert_eq!(ended.unwrap().assignment, Assignment::Finished);
    }

    #[test]
    fn a_bad_annotation_holds_the_pod_and_keeps_it() {
        let bad = wire(|object| {
            object["metadata"]["annotations"] = json!({"corridoros.io/corridorRef": "nonsense"});
        });
        let hold = bad.unwrap().spec.hold.clone().unwrap().to_string();
        assert!(hold.starts_with("invalid annotation corridoros.io/corridorRef: "), "{hold}");
    }

    #[test]
    fn knows_what_its_condition_says() {
        let told = wire(|object| {
            object["status"]["conditions"] =
                json!([{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]);
        });
        assert_eq!(told.unwrap().condition_message.as_deref(), Some("0/1 nodes"));
    }
}
