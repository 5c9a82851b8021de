use serde_json::from_value;

use super::*;

const FINALIZER: &str = crds::CORRIDOR_FINALIZER;

/// As the controllers leave it: finalizer and intent, by their own hand.
fn metadata(version: u64, changes: Value) -> ObjectMeta {
    let mut metadata = json!({
        "resourceVersion": version.to_string(),
        "finalizers": [FINALIZER],
        "annotations": {
            "corridoros.io/allocationIntent": "{}", "corridoros.io/attestationTicket": "t",
        },
        "managedFields": [entry("corridor-controllers", &annotation("allocationIntent"))],
    });
    if let (Value::Object(all), Value::Object(changes)) = (&mut metadata, changes) {
        all.extend(changes);
    }
    from_value(metadata).unwrap()
}

fn annotation(name: &str) -> Value {
    json!({"f:metadata": {"f:annotations": {format!("f:corridoros.io/{name}"): {}}}})
}

fn entry(manager: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": "Apply", "fieldsV1": fields})
}

fn kinds(found: Differences) -> Vec<Tampering> {
    found.into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn our_own_writes_and_older_sights_say_nothing() {
    let mut guard = Guard::default();
    assert_eq!(guard.check(&metadata(1, json!({})), 1, FINALIZER), []);
    guard.wrote_status(&metadata(5, json!({})), 2);
    assert_eq!(guard.check(&metadata(3, json!({})), 1, FINALIZER), []);
    assert_eq!(guard.check(&metadata(5, json!({})), 2, FINALIZER), []);
    assert_eq!(guard.check(&metadata(6, json!({"labels": {"a": "b"}})), 2, FINALIZER), []);
}

#[test]
fn every_thing_of_ours_that_changes_is_noticed() {
    let mut guard = Guard::default();
    guard.check(&metadata(1, json!({})), 1, FINALIZER);
    let stripped =
        json!({"finalizers": [], "annotations": {"corridoros.io/allocationIntent": "{}"}});
    let found = kinds(guard.check(&metadata(2, stripped), 9, FINALIZER));
    assert_eq!(found, [Tampering::Status, Tampering::Ticket, Tampering::Finalizer]);
    assert!(guard.is_overwritten);
    assert_eq!(guard.own_status(), Some(&1), "our word stands");
}

#[test]
fn a_start_asks_who_wrote_what() {
    let found = |changes| kinds(Guard::default().check(&metadata(1, changes), 1, FINALIZER));
    assert_eq!(found(json!({})), []);
    let status = entry("corridor-driver", &json!({"f:status": {"f:inUse": {}}}));
    assert_eq!(found(json!({"managedFields": [status]})), []);
    let status = entry("kubectl-edit", &json!({"f:status": {"f:phase": {}}}));
    assert_eq!(found(json!({"managedFields": [status]})), [Tampering::Status]);
    let intent = entry("kubectl", &annotation("allocationIntent"));
    assert_eq!(found(json!({"managedFields": [intent]})), [Tampering::Intent]);
    let ticket = entry("kubectl", &annotation("attestationTicket"));
    assert_eq!(found(json!({"managedFields": [ticket]})), [Tampering::Ticket]);
    assert_eq!(found(json!({"annotations": {}})), [Tampering::Intent]);
    assert_eq!(found(json!({"finalizers": []})), [Tampering::Finalizer]);
    let leaving = json!({"finalizers": [], "deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert_eq!(found(leaving), [], "it is on its way out");
    let untouched = json!({"finalizers": [], "annotations": {}, "managedFields": []});
    assert_eq!(found(untouched), [], "nothing of ours is there yet");
}

#[test]
fn what_a_write_without_an_answer_says_is_ours() {
    let mut guard = Guard::default();
    guard.check(&metadata(1, json!({})), 1, FINALIZER);
    guard.sending_status(2);
    guard.sending_status(3);
    assert_eq!(guard.check(&metadata(2, json!({})), 2, FINALIZER), []);
    assert_eq!(guard.check(&metadata(3, json!({})), 3, FINALIZER), []);
    assert_eq!(guard.own_status(), Some(&3), "it was carried out");
    let found = kinds(guard.check(&metadata(4, json!({})), 4, FINALIZER));
    assert_eq!(found, [Tampering::Status], "that was nobody of us");
    let annotations = json!({annotations::ATTESTATION_TICKET: "new"});
    let before = OwnMetadata::of(&metadata(4, json!({})), FINALIZER);
    let patch = json!({"annotations": annotations.clone()});
    guard.sent_metadata.sending(Instant::now(), before.patched(&patch, FINALIZER));
    let ticket = |ticket: &str| {
        json!({"annotations": {
            annotations::ALLOCATION_INTENT: "{}", annotations::ATTESTATION_TICKET: ticket,
        }})
    };
    guard.wrote_status(&metadata(4, json!({})), 4);
    assert_eq!(guard.check(&metadata(5, ticket("new")), 4, FINALIZER), []);
    let found = kinds(guard.check(&metadata(6, ticket("forged")), 4, FINALIZER));
    assert_eq!(found, [Tampering::Ticket]);
}

/// A part in 10^16 more, and a status that was only read and written again would not be ours.
#[test]
fn a_reading_is_read_as_it_was_written() {
    for text in ["5.1397360212894546e-14", "6.922945394924597e-14", "105.542"] {
        let read: f64 = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

#[test]
fn what_was_answered_and_comes_back_is_somebody_elses_doing() {
    let mut guard = Guard::default();
    guard.check(&metadata(1, json!({})), 1, FINALIZER);
    for (version, own) in [(2, 2), (3, 3)] {
        guard.sending_status(own);
        guard.wrote_status(&metadata(version, json!({})), own);
    }
    let found = kinds(guard.check(&metadata(4, json!({})), 2, FINALIZER));
    assert_eq!(found, [Tampering::Status], "a former word of ours");
}
