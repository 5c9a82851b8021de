//! Each fault is put into a sound record, and must be found.

use std::time::Instant;

use serde_json::json;

use super::*;

const GPU: [&str; 3] = ["gpu.example", "node-1", "gpu-0"];

fn version(resource_version: u64, object: Value) -> Version {
    Version { resource_version, deleted: false, object, seen: Instant::now() }
}

fn slice(devices: &Value, counters: &Value) -> (DeviceKind, Version) {
    let [driver, pool, _] = GPU;
    let pool = json!({ "name": pool, "generation": 1, "resourceSliceCount": 1 });
    let spec = json!({
        "driver": driver, "pool": pool, "devices": devices, "sharedCounters": counters,
    });
    (DeviceKind::Slice, version(1, json!({ "metadata": { "uid": "slice" }, "spec": spec })))
}

fn result(device: &str) -> Value {
    json!({ "driver": GPU[0], "pool": GPU[1], "device": device })
}

fn share(id: &str, amount: &str) -> Value {
    let mut result = result("gpu-0");
    result["shareID"] = json!(id);
    result["consumedCapacity"] = json!({ "memory": amount });
    result
}

fn claim(at: u64, name: &str, results: &[Value], users: &[&str]) -> (DeviceKind, Version) {
    let finalizers = ["resource.kubernetes.io/delete-protection"];
    let metadata = json!({ "namespace": "t", "name": name, "uid": name, "finalizers": finalizers });
    let users: Vec<_> = users.iter().map(|uid| json!({ "uid": uid })).collect();
    let fields = json!([{ "key": "metadata.name", "operator": "In", "values": ["node-1"] }]);
    let selector = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
    let allocation = json!({ "devices": { "results": results }, "nodeSelector": selector });
    let status = json!({ "allocation": allocation, "reservedFor": users });
    (DeviceKind::Claim, version(at, json!({ "metadata": metadata, "status": status })))
}

fn freed(at: u64, name: &str) -> (DeviceKind, Version) {
    let metadata = json!({ "namespace": "t", "name": name, "uid": name });
    (DeviceKind::Claim, version(at, json!({ "metadata": metadata })))
}

fn pod(at: u64, uid: &str, node: &str, claim: &str) -> (DeviceKind, Version) {
    let metadata = json!({ "namespace": "t", "name": uid, "uid": uid });
    let claims = json!([{ "name": "c", "resourceClaimName": claim }]);
    let spec = json!({ "nodeName": node, "resourceClaims": claims });
    (DeviceKind::Pod, version(at, json!({ "metadata": metadata, "spec": spec })))
}

fn plain_slice() -> (DeviceKind, Version) {
    slice(&json!([{ "name": "gpu-0" }, { "name": "gpu-1" }]), &json!([]))
}

fn complaint(versions: Vec<(DeviceKind, Version)>) -> String {
    DeviceView::replay(versions).unwrap_err().to_string()
}

#[test]
fn a_sound_record_passes_and_is_counted() {
    let figures = DeviceView::replay(vec![
        plain_slice(),
        claim(2, "a", &[result("gpu-0")], &["p"]),
        claim(3, "b", &[result("gpu-1")], &["q"]),
        pod(4, "p", "node-1", "a"),
        freed(5, "a"),
        claim(6, "c", &[result("gpu-0")], &["r"]),
    ]);
    let expected = DeviceFigures { versions: 6, allocations: 3, bindings: 1 };
    assert_eq!(figures.unwrap(), expected);
}

#[test]
fn a_device_in_two_claims_is_found_though_one_is_freed_later() {
    let told = complaint(vec![
        plain_slice(),
        claim(3, "b", &[result("gpu-0")], &["q"]),
        claim(2, "a", &[result("gpu-0")], &["p"]),
        freed(4, "a"),
    ]);
    assert!(told.contains("at version 3") && told.contains("is in 2 claims"), "{told}");
}

#[test]
fn an_administrator_takes_nothing() {
    let mut looks = result("gpu-0");
    looks["adminAccess"] = json!(true);
    let used = claim(2, "a", &[result("gpu-0")], &["p"]);
    DeviceView::replay(vec![plain_slice(), used, claim(3, "b", &[looks], &["q"])]).unwrap();
}

#[test]
fn shares_fit_into_the_capacity() {
    let memory = json!({ "memory": { "value": "80Gi" } });
    let shared = json!([{ "name": "gpu-0", "capacity": memory }]);
    let record = |amount: &str, id: &str| {
        vec![
            slice(&shared, &json!([])),
            claim(2, "a", &[share("one", "50Gi")], &["p"]),
            claim(3, "b", &[share(id, amount)], &["q"]),
        ]
    };
    DeviceView::replay(record("30Gi", "two")).unwrap();
    assert!(complaint(record("31Gi", "two")).contains("of memory of"));
    assert!(complaint(record("1Gi", "one")).contains("one share in several claims"));
}

#[test]
fn counters_are_not_overdrawn() {
    let draws = json!([{ "counterSet": "s", "counters": { "slots": { "value": "2" } } }]);
    let parts = json!([{ "name": "a", "consumesCounters": draws }, { "name": "b", "consumesCounters": draws }]);
    let record = |slots: &str| {
        let sets = json!([{ "name": "s", "counters": { "slots": { "value": slots } } }]);
        vec![
            slice(&parts, &sets),
            claim(2, "a", &[result("a")], &["p"]),
            claim(3, "b", &[result("b")], &["q"]),
        ]
    };
    DeviceView::replay(record("4")).unwrap();
    assert!(complaint(record("3")).contains("of s/slots of"));
}

#[test]
fn devices_that_change_without_being_freed_are_found() {
    let before = claim(2, "a", &[result("gpu-0")], &["p"]);
    let told = complaint(vec![plain_slice(), before, claim(3, "a", &[result("gpu-1")], &["p"])]);
    assert!(told.contains("were changed"), "{told}");
}

#[test]
fn a_user_that_is_named_twice_is_found() {
    let told = complaint(vec![plain_slice(), claim(2, "a", &[result("gpu-0")], &["p", "p"])]);
    assert!(told.contains("has 2 users, 1 different"), "{told}");
}

#[test]
fn devices_without_finalizer_are_found() {
    let (kind, mut bare) = claim(2, "a", &[result("gpu-0")], &["p"]);
    bare.object["metadata"]["finalizers"] = json!([]);
    assert!(complaint(vec![plain_slice(), (kind, bare)]).contains("no finalizer"));
}

#[test]
fn a_pod_that_is_bound_too_early_or_elsewhere_is_found() {
    let allocated = || claim(2, "a", &[result("gpu-0")], &["p"]);
    let bound = |versions: Vec<_>| complaint([vec![plain_slice()], versions].concat());
    assert!(bound(vec![pod(3, "p", "node-1", "a")]).contains("is not there"));
    let early = vec![freed(2, "a"), pod(3, "p", "node-1", "a")];
    assert!(bound(early).contains("has no devices"));
    let other = vec![allocated(), pod(3, "q", "node-1", "a")];
    assert!(bound(other).contains("is not reserved for it"));
    let elsewhere = vec![allocated(), pod(3, "p", "node-2", "a")];
    assert!(bound(elsewhere).contains("cannot be used on node-2"));
}

#[test]
fn devices_of_pods_that_are_over_are_forgotten() {
    let object = |(_, version): (DeviceKind, Version)| version.object;
    let claims = [object(claim(2, "a", &[result("gpu-0")], &["p"]))];
    let mut pod = object(pod(3, "p", "node-1", "a"));
    assert!(forgotten_claims(&claims, std::slice::from_ref(&pod)).is_empty());
    pod["status"]["phase"] = json!("Succeeded");
    assert_eq!(forgotten_claims(&claims, &[pod]), ["t/a"]);
    assert_eq!(forgotten_claims(&claims, &[]), ["t/a"]);
    let unreserved = [object(claim(2, "a", &[result("gpu-0")], &[]))];
    assert_eq!(forgotten_claims(&unreserved, &[]), ["t/a"]);
    assert!(forgotten_claims(&[object(freed(2, "a"))], &[]).is_empty());
}
