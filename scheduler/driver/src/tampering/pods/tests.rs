use serde_json::{Value, json};

use super::*;

const GRANT_OF_4: &str = r#"{"v":1,"corridor":{"uid":"c","milliGbps":4000}}"#;

/// A Pod of ours that asks for 4 Gbps.
fn pod(node: &str, results: &Value) -> WirePod {
    let mut annotations = json!({
        "corridoros.io/corridorRef": "a/c", "corridoros.io/corridorGbps": "4",
    });
    if let (Value::Object(all), Value::Object(results)) = (&mut annotations, results.clone()) {
        all.extend(results);
    }
    serde_json::from_value(json!({
        "metadata": {"namespace": "a", "name": "p", "uid": "u", "annotations": annotations},
        "spec": {"schedulerName": "corridor-scheduler", "nodeName": node},
    }))
    .unwrap()
}

fn granted() -> Value {
    json!({"corridoros.io/grant": GRANT_OF_4, "corridoros.io/corridorId": "cor-1"})
}

fn kinds(guard: &mut PodGuard) -> Vec<Tampering> {
    guard.noticed.drain(..).map(|(alarm, _)| alarm.kind).collect()
}

fn deciding() -> (PodGuard, Instant) {
    let (mut guard, now) = (PodGuard::default(), Instant::now());
    guard.decides(now);
    (guard, now)
}

/// As if this process had sent its Binding.
fn sent(guard: &mut PodGuard, node: &str) {
    let sent = (NodeName::new(node), Some(GRANT_OF_4.to_owned()));
    guard.known.entry("u".into()).or_default().sent = Some(sent);
}

#[test]
fn an_ordinary_life_raises_no_alarm() {
    let (mut guard, now) = deciding();
    assert!(guard.sees(&pod("", &json!({})), &ProfileNames::default(), now));
    sent(&mut guard, "n1");
    for _ in 0..2 {
        assert!(guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now));
    }
    assert_eq!(kinds(&mut guard), []);
    guard.gone(&"u".into());
    assert!(guard.known.is_empty());
}

#[test]
fn a_restart_believes_what_hangs_together() {
    let (mut guard, now) = (PodGuard::default(), Instant::now());
    assert!(guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now));
    guard.decides(now);
    assert!(guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now));
    assert_eq!(kinds(&mut guard), []);
}

#[test]
fn a_late_binding_of_a_former_self_is_no_forgery() {
    let (mut guard, now) = (PodGuard::default(), Instant::now());
    guard.sees(&pod("", &json!({})), &ProfileNames::default(), now);
    guard.decides(now);
    assert!(guard.sees(
        &pod("n1", &granted()),
        &ProfileNames::default(),
        now + LATE_BINDING_MAX / 2
    ));
    assert_eq!(kinds(&mut guard), []);
}

#[test]
fn an_edit_is_told_once_and_another_edit_once_more() {
    let (mut guard, now) = deciding();
    sent(&mut guard, "n1");
    guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now);
    let lowered = json!({"corridoros.io/grant": r#"{"v":1}"#});
    for _ in 0..3 {
        assert!(
            guard.sees(&pod("n1", &lowered), &ProfileNames::default(), now),
            "the engine keeps what it granted"
        );
    }
    assert_eq!(kinds(&mut guard), [Tampering::Grant]);
    guard.sees(&pod("n1", &json!({})), &ProfileNames::default(), now);
    assert_eq!(kinds(&mut guard), [Tampering::Grant]);
    let mut led = granted();
    led["corridoros.io/leader"] = json!("x/1");
    guard.sees(&pod("n1", &led), &ProfileNames::default(), now);
    assert_eq!(kinds(&mut guard), [Tampering::Leader]);
}

#[test]
fn people_are_told_so_often_and_no_more() {
    let (mut guard, now) = deciding();
    sent(&mut guard, "n1");
    guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now);
    for number in 0..20 {
        let other = json!({"corridoros.io/grant": number.to_string()});
        guard.sees(&pod("n1", &other), &ProfileNames::default(), now);
    }
    let told = guard.noticed.iter().filter(|(_, is_told)| *is_told).count();
    assert_eq!((guard.noticed.len(), told), (20, usize::from(TAMPERING_REPORTS_MAX)));
}

#[test]
fn a_pod_that_others_placed_holds_no_grant() {
    let (mut guard, now) = deciding();
    for _ in 0..2 {
        assert!(!guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now));
    }
    assert_eq!(kinds(&mut guard), [Tampering::Placement]);
    // Not even when we were about to bind it elsewhere.
    let (mut guard, now) = deciding();
    sent(&mut guard, "n2");
    assert!(!guard.sees(&pod("n1", &granted()), &ProfileNames::default(), now));
    assert_eq!(kinds(&mut guard), [Tampering::Placement]);
}

#[test]
fn another_leaders_binding_counts_and_is_told() {
    let (mut guard, now) = deciding();
    let mut led = granted();
    led["corridoros.io/leader"] = json!("other/1");
    assert!(guard.sees(&pod("n1", &led), &ProfileNames::default(), now));
    assert_eq!(kinds(&mut guard), [Tampering::Leader]);
}

#[test]
fn results_on_a_waiting_pod_are_told() {
    let (mut guard, now) = deciding();
    for _ in 0..2 {
        guard.sees(&pod("", &granted()), &ProfileNames::default(), now);
    }
    assert_eq!(kinds(&mut guard), [Tampering::Grant]);
}

#[test]
fn what_was_done_while_no_replica_ran_is_found_at_the_start() {
    let found = |pod: &WirePod| {
        let mut guard = PodGuard::default();
        assert!(
            guard.sees(pod, &ProfileNames::default(), Instant::now()),
            "no certainty, no consequence"
        );
        kinds(&mut guard)
    };
    assert_eq!(found(&pod("n1", &json!({}))), [Tampering::Placement]);
    let handle = json!({"corridoros.io/corridorId": "cor-1"});
    assert_eq!(found(&pod("n1", &handle)), [Tampering::Grant]);
    for bad in ["", "{}", r#"{"v":1}"#, r#"{"v":1,"corridor":{"uid":"c","milliGbps":1}}"#] {
        let results = json!({"corridoros.io/grant": bad});
        assert_eq!(found(&pod("n1", &results)), [Tampering::Grant], "{bad}");
    }
    let mut edited = pod("n1", &granted());
    edited.metadata.managed_fields = Some(Vec::new());
    assert_eq!(found(&edited), [Tampering::Grant]);
}

#[test]
fn pods_of_others_and_pods_without_references_are_ignored() {
    let (mut guard, now) = deciding();
    let mut other = pod("n1", &granted());
    other.spec.scheduler_name = "default-scheduler".to_owned();
    let mut plain = pod("n1", &json!({}));
    plain.metadata.annotations = None;
    let mut ended = pod("n1", &json!({}));
    ended.status.phase = "Succeeded".to_owned();
    for pod in [other, plain, ended] {
        assert!(guard.sees(&pod, &ProfileNames::default(), now));
    }
    assert_eq!(kinds(&mut guard), []);
}

/// A Pod that asks for nothing, bound by a leader.
fn plain(node: &str, leader: &str) -> WirePod {
    serde_json::from_value(json!({
        "metadata": {"namespace": "a", "name": "q", "uid": "q",
            "annotations": {"corridoros.io/leader": leader}},
        "spec": {"schedulerName": "corridor-scheduler", "nodeName": node},
    }))
    .unwrap()
}

#[test]
fn a_change_of_leader_raises_no_alarm_and_a_late_leader_does() {
    let (mut guard, now) = (PodGuard::default(), Instant::now());
    let mut by_former = granted();
    by_former["corridoros.io/leader"] = json!("a_1/1");
    guard.sees(&pod("n1", &by_former), &ProfileNames::default(), now);
    guard.sees(&plain("n1", "a_1/1"), &ProfileNames::default(), now);
    assert_eq!(kinds(&mut guard), [], "a follower looks on");
    guard.leads_as(Some("b_1/2".into()));
    guard.decides(now);
    guard.sees(&pod("n1", &by_former), &ProfileNames::default(), now);
    guard.gone(&"q".into());
    guard.sees(&plain("n2", "a_1/1"), &ProfileNames::default(), now);
    assert_eq!(kinds(&mut guard), [Tampering::Leader], "it was not there when we began");
    guard.leads_as(None);
    guard.gone(&"q".into());
    guard.sees(&plain("n2", "c_1/3"), &ProfileNames::default(), now);
    assert_eq!(kinds(&mut guard), [], "it leads no more");
}

fn told(guard: &mut PodGuard) -> Vec<&'static str> {
    std::iter::from_fn(|| guard.notices.next()).map(|notice| notice.message).collect()
}

/// A Pod as [`pod`] has it, with another wish.
fn wishing(gbps: &str) -> WirePod {
    let mut results = granted();
    results["corridoros.io/corridorGbps"] = json!(gbps);
    pod("n1", &results)
}

#[test]
fn a_change_by_the_tenant_without_effect_is_reported_and_raises_no_alarm() {
    let (mut guard, now) = deciding();
    sent(&mut guard, "n1");
    guard.sees(&wishing("4"), &ProfileNames::default(), now);
    assert_eq!(told(&mut guard), [""; 0]);
    for _ in 0..2 {
        assert!(guard.sees(&wishing("9"), &ProfileNames::default(), now));
    }
    assert_eq!(told(&mut guard), [REFERENCES_CHANGED], "once");
    guard.sees(&wishing("12"), &ProfileNames::default(), now);
    assert_eq!(told(&mut guard), [REFERENCES_CHANGED], "another one");
    assert_eq!(kinds(&mut guard), []);
}

#[test]
fn an_end_that_cannot_be_read_is_told_once() {
    let (mut guard, now) = deciding();
    let ends = |text: &str| pod("", &json!({"corridoros.io/expectedEnd": text}));
    for text in ["2026-01-31T18:00:00Z", "tomorrow", "tomorrow", "soon"] {
        guard.sees(&ends(text), &ProfileNames::default(), now);
    }
    assert_eq!(told(&mut guard).len(), 2);
    guard.gone(&"u".into());
    guard.sees(&ends("soon"), &ProfileNames::default(), now);
    assert_eq!(told(&mut guard).len(), 1);
}
