use std::time::Instant;

use serde_json::json;

use super::*;

fn version(resource_version: u64, uid: &str, cpu: &str, gbps: u64) -> PodVersion {
    let grant = format!(r#"{{"v":1,"corridor":{{"uid":"c1","milliGbps":{}}}}}"#, gbps * 1000);
    let pod = serde_json::from_value(json!({
        "metadata": { "name": uid, "uid": uid, "annotations": { (GRANT): grant } },
        "spec": {
            "nodeName": "node-1",
            "containers": [{ "name": "main", "resources": { "requests": { "cpu": cpu } } }],
        },
    }));
    PodVersion { resource_version, deleted: false, pod: pod.unwrap(), seen: Instant::now() }
}

fn limits() -> Limits {
    let node = Amounts { cpu: 1000, memory: 0, pods: 2 };
    Limits {
        nodes: BTreeMap::from([("node-1".to_owned(), node)]),
        corridors: BTreeMap::from([("c1".to_owned(), 100_000)]),
    }
}

#[test]
fn a_full_node_and_corridor_are_fine() {
    let versions = [version(1, "a", "600m", 60), version(2, "b", "400m", 40)];
    assert_eq!(limits().check(&versions).unwrap()["c1"], 100_000);
}

#[test]
fn a_later_version_of_a_pod_replaces_the_earlier() {
    let versions = [version(1, "a", "600m", 60), version(2, "a", "600m", 60)];
    assert_eq!(limits().check(&versions).unwrap()["c1"], 60_000);
}

#[test]
fn overcommit_is_found_even_if_it_passes() {
    let mut gone = version(3, "a", "600m", 0);
    gone.deleted = true;
    let versions = [version(1, "a", "600m", 0), version(2, "b", "500m", 0), gone];
    let found = limits().check(&versions).unwrap_err().to_string();
    assert!(found.starts_with("at version 2 Node node-1 is above"), "{found}");
}

#[test]
fn a_corridor_above_its_floor_is_found() {
    let versions = [version(1, "a", "1m", 60), version(2, "b", "1m", 41)];
    let found = limits().check(&versions).unwrap_err().to_string();
    assert!(found.contains("Corridor c1 is above"), "{found}");
}

#[test]
fn too_many_pods_are_found() {
    let versions = ["a", "b", "c"].map(|uid| version(1, uid, "1m", 0));
    assert!(limits().check(&versions).is_err());
}

#[test]
fn ended_pods_use_nothing() {
    let mut ended = version(2, "a", "600m", 60);
    let succeeded = json!({ "phase": "Succeeded" });
    ended.pod.status = Some(serde_json::from_value(succeeded).unwrap());
    let versions = [version(1, "a", "600m", 60), ended, version(3, "b", "1000m", 100)];
    assert!(limits().check(&versions).is_ok());
}

#[test]
fn starting_peaks_sidecars_and_overhead_count() {
    let request = |cpu: &str| json!({ "requests": { "cpu": cpu } });
    let spec: PodSpec = serde_json::from_value(json!({
        "overhead": { "cpu": "5m" },
        "initContainers": [
            { "name": "sidecar", "restartPolicy": "Always", "resources": request("100m") },
            { "name": "init", "resources": request("300m") },
        ],
        "containers": [{ "name": "main", "resources": request("250m") }],
    }))
    .unwrap();
    assert_eq!(requested(&spec, "cpu"), Some(405));
}
