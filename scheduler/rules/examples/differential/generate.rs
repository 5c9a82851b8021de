//! The case of a seed: a random cluster and a Pod, with what an API server adds when it stores objects.

use random_clusters::{GeneratedCluster, PlacedPod, Random, Rule, Rules};
use random_clusters::{asked_node, incoming, key_of, placed, resolve_classes};
use serde_json::{Value, json};

use crate::config::config;

/// The case of this seed, as the Go program reads it.
pub fn case(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    // A Pod behind a gate is not tried: there would be no answer.
    let rules = &Rules::all().without(&[Rule::Gates]).unchecked();
    let cluster = GeneratedCluster::new(random, rules);
    let mut pod = stored(incoming(random, rules), "incoming");
    if random.chance(15) {
        pod["status"]["nominatedNodeName"] = json!(asked_node(random));
    }
    json!({
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
    })
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
