//! A Pod as the engine sees it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crds::annotations::{EXPECTED_END, GRANT, RESULTS};
use jiff::Timestamp;
use model::{
    Assignment, DeclaredBy, DeclaredEnd, Deletion, FailurePolicy, Hold, Need, NodeName, Pod,
    PodSpec, PodUid,
};

use super::grant::parse_grant;
use super::key;
use super::needs::{failure_policy, needs};
use super::pod_claims::pod_claims;
use super::scheduling_spec::scheduling_spec;
use super::unknown_annotation::unknown_annotation;
use super::unsupported::unsupported_field;
use super::volume::volumes;
use crate::profile_names::ProfileNames;
use crate::wire::{DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, WireCondition, WirePod};

/// `None` for a Pod that does not concern us: another scheduler's that is not on a Node yet, and
/// is nominated for none.
pub(crate) fn pod(wire: &WirePod, profiles: &ProfileNames) -> Option<Pod> {
    let assignment = assignment(wire, profiles)?;
    let (metadata, status) = (&wire.metadata, &wire.status);
    let (uid, resource_version) = (metadata.uid.as_ref()?, metadata.resource_version.as_ref()?);
    let key = key(metadata);
    let created = metadata.creation_timestamp.as_ref();
    let is_ours = is_ours_to_place(&assignment);
    let asked = if is_ours { asked(wire) } else { Asked::default() };
    let unscheduled = status.condition("PodScheduled").filter(|it| it.status == "False");
    Some(Pod {
        spec: Arc::new(PodSpec {
            profile: wire.spec.scheduler_name.as_str().into(),
            namespace: key.namespace.clone(),
            scheduling: Arc::new(scheduling_spec(&key.namespace, wire)),
            needs: asked.needs,
            failure_policy: asked.failure_policy,
            hold: asked.hold,
            volumes: volumes(&key.name, &wire.spec.volumes),
            resource_claims: pod_claims(wire),
        }),
        key,
        uid: PodUid::new(uid),
        resource_version: if is_ours {
            resource_version.as_str().into()
        } else {
            NO_VERSION.clone()
        },
        created_at_unix_s: created.map_or(0, |time| time.0.as_second()),
        assignment,
        nominated_node: node_name(&status.nominated_node_name),
        started_at_unix_s: status.start_time.unix_s(),
        deletion: deletion(wire),
        grace_period: grace_period(wire),
        is_announced: is_announced(wire),
        condition_message: unscheduled.map(|condition| condition.message.as_str().into()),
        declared_end: declared_end(wire).map(Box::new),
    })
}

/// What the API server sets where a Pod says nothing.
const GRACE_PERIOD_DEFAULT_S: i64 = 30;
/// A week: an absurd figure must not overflow what is added to it.
const GRACE_PERIOD_MAX_S: u64 = 7 * 24 * 3600;

/// One for all Pods whose version is not needed.
static NO_VERSION: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));

fn is_ours_to_place(assignment: &Assignment) -> bool {
    matches!(assignment, Assignment::Waiting | Assignment::Gated { .. } | Assignment::Leaving)
}

fn node_name(text: &str) -> Option<NodeName> {
    (!text.is_empty()).then(|| NodeName::new(text))
}

fn preempted(wire: &WirePod) -> Option<&WireCondition> {
    let condition = wire.status.condition(DISRUPTION_TARGET);
    condition.filter(|it| it.status == "True" && it.reason == PREEMPTION_BY_SCHEDULER)
}

/// Each scheduler begins the message with its name.
fn is_announced(wire: &WirePod) -> bool {
    let by_us = |it: &WireCondition| it.message.starts_with(crds::SCHEDULER_NAME);
    wire.metadata.deletion_timestamp.is_none() && preempted(wire).is_some_and(by_us)
}

fn deletion(wire: &WirePod) -> Deletion {
    if wire.metadata.deletion_timestamp.is_none() {
        return Deletion::None;
    }
    let by_preemption = preempted(wire).is_some();
    if by_preemption { Deletion::TerminatingByPreemption } else { Deletion::Terminating }
}

/// The API server sets one for every Pod. What is below zero ends at once, as the kubelet has it.
fn grace_period(wire: &WirePod) -> Duration {
    let seconds = wire.spec.termination_grace_period_seconds.unwrap_or(GRACE_PERIOD_DEFAULT_S);
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(GRACE_PERIOD_MAX_S))
}

/// The annotation, unless the kubelet ends the Pod before. One that cannot be read declares nothing.
fn declared_end(wire: &WirePod) -> Option<DeclaredEnd> {
    let annotation = wire.metadata.annotations.as_ref().and_then(|it| it.get(EXPECTED_END));
    let expected = annotation.and_then(|text| text.parse::<Timestamp>().ok());
    let expected =
        expected.map(|at| DeclaredEnd { at_unix_s: at.as_second(), by: DeclaredBy::ExpectedEnd });
    let started = wire.status.start_time.unix_s();
    let deadline = started.zip(wire.spec.active_deadline_seconds).map(|(started, seconds)| {
        DeclaredEnd { at_unix_s: started.saturating_add(seconds), by: DeclaredBy::ActiveDeadline }
    });
    [deadline, expected].into_iter().flatten().min_by_key(|end| end.at_unix_s)
}

fn assignment(wire: &WirePod, profiles: &ProfileNames) -> Option<Assignment> {
    let (spec, status) = (&wire.spec, &wire.status);
    if wire.is_completed() {
        return Some(Assignment::Finished);
    }
    if !spec.node_name.is_empty() {
        // Only our own Bindings grant anything.
        let annotations = wire.metadata.annotations.as_ref();
        let annotations = annotations.filter(|_| profiles.has(&spec.scheduler_name));
        let grant = annotations.and_then(|annotations| annotations.get(GRANT));
        let grant = grant.and_then(|text| parse_grant(text)).map(Box::new);
        return Some(Assignment::Bound { node: NodeName::new(&spec.node_name), grant });
    }
    if !profiles.has(&spec.scheduler_name) {
        return (!status.nominated_node_name.is_empty()).then_some(Assignment::Foreign);
    }
    if wire.metadata.deletion_timestamp.is_some() {
        return Some(Assignment::Leaving);
    }
    let gates = &spec.scheduling_gates;
    if gates.is_empty() {
        return Some(Assignment::Waiting);
    }
    Some(Assignment::Gated { gates: gates.iter().map(|gate| gate.name.as_str().into()).collect() })
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
    // What its Binding does not overwrite would look like ours for ever after.
    if let Some(key) = RESULTS.into_iter().find(|key| annotations.contains_key(*key)) {
        let (key, why) = (key.to_owned(), "only the scheduler writes it; remove it".to_owned());
        return Asked { hold: Some(Hold::InvalidAnnotation { key, why }), ..Asked::default() };
    }
    if let Some(hold) = unknown_annotation(&annotations) {
        return Asked { hold: Some(hold), ..Asked::default() };
    }
    match (needs(&annotations), failure_policy(&annotations)) {
        (Ok(needs), Ok(failure_policy)) => Asked { needs, failure_policy, hold: unsupported },
        (Err(hold), _) | (_, Err(hold)) => Asked { hold: Some(hold), ..Asked::default() },
    }
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
        pod(&serde_json::from_value(object).unwrap(), &ProfileNames::default())
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
        let gate = |object: &mut Value| object["spec"]["schedulingGates"] = json!([{"name": "g"}]);
        let gated = wire(gate).unwrap();
        assert_eq!(gated.assignment, Assignment::Gated { gates: vec!["g".into()] });
        assert_eq!(gated.deletion, Deletion::None);
        let leaving = wire(|object| {
            gate(object);
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        let leaving = leaving.unwrap();
        assert_eq!(leaving.assignment, Assignment::Leaving);
        assert_eq!(leaving.deletion, Deletion::Terminating);
        let ended = wire(|object| {
            object["spec"]["nodeName"] = json!("n1");
            object["status"]["phase"] = json!("Succeeded");
        });
        assert_eq!(ended.unwrap().assignment, Assignment::Finished);
    }

    #[test]
    fn another_schedulers_pod_concerns_us_while_a_node_is_promised_to_it() {
        let foreign = |nominated: &str| {
            wire(|object| {
                object["spec"]["schedulerName"] = json!("default-scheduler");
                object["status"]["nominatedNodeName"] = json!(nominated);
                object["metadata"]["annotations"] = json!({"corridoros.io/corridorRef": "a/c"});
            })
        };
        let promised = foreign("n1").unwrap();
        assert_eq!(promised.assignment, Assignment::Foreign);
        assert_eq!(promised.nominated_node, Some("n1".into()));
        assert_eq!(promised.spec.needs, [], "what it asks of corridors is not ours to give");
        assert_eq!(foreign(""), None);
    }

    #[test]
    fn a_pod_that_this_scheduler_has_told_to_go_is_known() {
        let told = |by: &str, status: &str, deleted: bool| {
            let pod = wire(|object| {
                object["spec"]["nodeName"] = json!("n1");
                object["status"]["conditions"] = json!([{
                    "type": "DisruptionTarget", "status": status, "reason": "PreemptionByScheduler",
                    "message": format!("{by}: preempting to accommodate a higher priority pod"),
                }]);
                if deleted {
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
            });
            pod.unwrap().is_announced
        };
        assert!(told("corridor-scheduler", "True", false));
        assert!(!told("corridor-scheduler", "False", false), "it may stay");
        assert!(!told("corridor-scheduler", "True", true), "it goes");
        assert!(!told("default-scheduler", "True", false), "another scheduler's victim");
    }

    #[test]
    fn how_long_a_pod_may_take_to_end_is_what_it_says() {
        let grace = |seconds: Value| {
            let pod = wire(|object| object["spec"]["terminationGracePeriodSeconds"] = seconds);
            pod.unwrap().grace_period.as_secs()
        };
        assert_eq!(grace(json!(120)), 120);
        assert_eq!(grace(json!(null)), 30);
        assert_eq!(grace(json!(-1)), 0);
        assert_eq!(grace(json!(i64::MAX)), GRACE_PERIOD_MAX_S);
    }

    #[test]
    fn a_victim_is_known_by_its_condition_once_it_goes() {
        let going = |status: &str, reason: &str, deleted: bool| {
            let pod = wire(|object| {
                object["spec"]["nodeName"] = json!("n1");
                object["status"]["startTime"] = json!("1970-01-01T00:00:10Z");
                object["status"]["conditions"] =
                    json!([{"type": "DisruptionTarget", "status": status, "reason": reason}]);
                if deleted {
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
            });
            let pod = pod.unwrap();
            assert_eq!(pod.started_at_unix_s, Some(10));
            pod.deletion
        };
        let preempted = Deletion::TerminatingByPreemption;
        assert_eq!(going("True", "PreemptionByScheduler", true), preempted);
        assert_eq!(going("False", "PreemptionByScheduler", true), Deletion::Terminating);
        assert_eq!(going("True", "EvictionByEvictionAPI", true), Deletion::Terminating);
        assert_eq!(going("True", "PreemptionByScheduler", false), Deletion::None);
    }

    #[test]
    fn garbage_is_no_pod_and_no_panic() {
        assert_eq!(pod(&WirePod::default(), &ProfileNames::default()), None);
        let odd = json!({
            "metadata": {"uid": "", "resourceVersion": "x", "ownerReferences": []},
            "spec": {
                "schedulerName": "corridor-scheduler", "priority": i32::MIN,
                "activeDeadlineSeconds": i64::MAX, "volumes": [{}, {"image": null}],
                "overhead": {"": "", "cpu": "\u{7}"},
                "topologySpreadConstraints": [{"maxSkew": i32::MIN, "minDomains": i32::MAX}],
            },
            "status": {"startTime": "2026-01-01T00:00:00Z"},
        });
        let odd = pod(&serde_json::from_value(odd).unwrap(), &ProfileNames::default()).unwrap();
        assert!(odd.spec.hold.is_some());
        assert_eq!(odd.declared_end.unwrap().at_unix_s, i64::MAX);
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
