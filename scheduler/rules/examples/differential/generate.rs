//! The case of a seed: a random cluster and a Pod, with what an API server adds when it stores objects.

use random_clusters::{GeneratedCluster, PlacedPod, Random, Rule, Rules};
use random_clusters::{add_volumes, asked_node, incoming, key_of, placed, resolve_classes};
use serde_json::{Value, json};

use crate::config::{config, without_waiting};

/// Another chance for volumes: without them, the case of a seed is as it is.
const VOLUMES_SEED: u64 = 0x766f_6c75_6d65_7300;

/// The case of this seed with volumes.
pub fn case_with_volumes(seed: u64) -> Value {
    let rules = Rules::all().without(&[Rule::Gates]).beside_volumes(seed);
    let (mut cluster, mut case) = parts(seed, &rules.unchecked());
    let random = &mut Random::new(seed ^ VOLUMES_SEED);
    let (mut pod, mut nominated) = (case["pod"].take(), case["nominated"].take());
    let nominated_pods = nominated.as_array_mut().expect("a list of Pods");
    let made = add_volumes(random, &mut cluster, &mut pod, nominated_pods);
    case["pod"] = pod;
    case["nominated"] = nominated;
    case["nodes"] = json!(cluster.nodes);
    case["pods"] = cluster.placed.iter().map(running).collect();
    case["config"] = without_waiting(random, case["config"].take());
    case["volumes"] = json!(made.volumes);
    case["claims"] = json!(made.claims);
    case["classes"] = json!(made.classes);
    case["csiNodes"] = json!(made.csi_nodes);
    case["csiDrivers"] = json!(made.csi_drivers);
    case["capacities"] = json!(made.capacities);
    case["attachments"] = json!(made.attachments);
    case
}

/// The case of this seed, as the Go program reads it.
pub fn case(seed: u64) -> Value {
    // A Pod behind a gate is not tried: there would be no answer.
    parts(seed, &Rules::all().without(&[Rule::Gates]).unchecked()).1
}

fn parts(seed: u64, rules: &Rules) -> (GeneratedCluster, Value) {
    let random = &mut Random::new(seed);
    let cluster = GeneratedCluster::new(random, rules);
    let mut pod = stored(incoming(random, rules), "incoming");
    if random.chance(15) {
        pod["status"]["nominatedNodeName"] = json!(asked_node(random));
    }
    let case = json!({
        "seed": seed,
        "config": config(random),
        "nodes": cluster.nodes,
        "pods": cluster.placed.iter().map(running).collect::<Vec<_>>(),
        "nominated": nominated_pods(random, rules, &cluster.nodes),
        "namespaces": cluster.namespaces.iter().map(namespace).collect::<Vec<_>>(),
        "budgets": others(&cluster, "poddisruptionbudgets"),
        "services": others(&cluster, "services"),
        "replicaSets": others(&cluster, "replicasets"),
        "statefulSets": others(&cluster, "statefulsets"),
        "pod": pod,
    });
    (cluster, case)
}

fn stored(mut pod: Value, name: &str) -> Value {
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(key_of(&pod));
    pod["spec"]["schedulerName"] = json!("default-scheduler");
    pod["status"] = json!({});
    resolve_classes(&mut pod);
    pod
}

fn running(placed: &PlacedPod) -> Value {
    let name = placed.object["metadata"]["name"].as_str().unwrap_or_default();
    let mut pod = stored(placed.object.clone(), name);
    pod["status"] = placed.status.clone();
    if placed.is_terminating {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        // The pretended API server refuses a Pod that terminates and waits for nothing.
        pod["metadata"]["finalizers"] = json!(["x/y"]);
    }
    pod
}

fn nominated_pods(random: &mut Random, rules: &Rules, nodes: &[Value]) -> Vec<Value> {
    if nodes.is_empty() || !random.chance(25) {
        return vec![];
    }
    let mut nominated = stored(placed(random, rules, 100), "nominated");
    // Only one of at least the same priority counts.
    nominated["spec"]["priority"] = json!(random.between(1, 4));
    // Behind a gate, it is not in the queue before the Pod that the case is about.
    nominated["spec"]["schedulingGates"] = json!([{"name": "g"}]);
    nominated["status"]["nominatedNodeName"] = random.pick(nodes)["metadata"]["name"].clone();
    vec![nominated]
}

fn namespace((name, labels): &(&str, Value)) -> Value {
    let mut labels = labels.clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|_, value| !value.is_null());
    }
    json!({"metadata": {"name": name, "labels": labels}})
}

fn others(cluster: &GeneratedCluster, resource: &str) -> Vec<Value> {
    let others = cluster.others.iter().filter(|other| other.resource == resource);
    let with_status = others.map(|other| {
        let mut object = other.object.clone();
        object["status"] = other.status.clone();
        object
    });
    with_status.collect()
}
