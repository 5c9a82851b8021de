//! Nodes.

use serde_json::{Value, json};

use crate::node_name;
use crate::random::Random;
use crate::rules::{Rule, Rules};

pub(crate) fn nodes(random: &mut Random, rules: &Rules, is_roomy: bool) -> Vec<Value> {
    let scale = if is_roomy { 5 } else { 1 };
    let counts = rules.if_unchecked([1, 2, 3, 4, 5, 6, 7, 8, 9], [3, 4, 5, 6, 6, 7, 7, 8, 8]);
    let count = if random.chance(2) { 0 } else { random.pick(&counts) };
    // A taint only matters on a Node that would be taken without it: some clusters have many.
    let tainted_percent = random.pick(&rules.if_unchecked([5, 5, 40], [10, 25, 70]));
    (0..count)
        .map(|number| {
            let mut node = node(random, rules, &node_name(number), scale);
            if rules.has(Rule::Taints) && random.chance(tainted_percent) {
                node["spec"]["taints"] = json!(taints(random, rules));
            }
            node
        })
        .collect()
}

fn node(random: &mut Random, rules: &Rules, name: &str, scale: usize) -> Value {
    let mut allocatable = json!({
        "cpu": format!("{}m", (500 + random.below(8) * 700) * scale),
        "memory": format!("{}Mi", (500 + random.below(8) * 900) * scale),
        "pods": (random.between(rules.if_unchecked(1, 2), 12) * scale).to_string(),
        "ephemeral-storage": "1Gi",
    });
    if random.chance(60) {
        allocatable["example.com/gpu"] = json!(random.below(5).to_string());
    }
    if random.chance(40) {
        allocatable["hugepages-2Mi"] = json!("8Mi");
    }
    let mut status = json!({"allocatable": allocatable, "capacity": allocatable});
    if rules.has(Rule::Images) {
        status["images"] = json!(images(random));
    }
    let mut features = vec![];
    if rules.has(Rule::Features) && random.chance(60) {
        features.push("RestartAllContainersOnContainerExits");
    }
    if rules.has(Rule::Features) && rules.is_unchecked() && random.chance(50) {
        features.push("UserNamespacesHostNetworkSupport");
    }
    if !features.is_empty() {
        status["declaredFeatures"] = json!(features);
    }
    let mut spec = json!({});
    if rules.has(Rule::Unschedulable) && random.chance(10) {
        spec["unschedulable"] = json!(true);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": node_labels(random, name)},
        "spec": spec,
        "status": status,
    })
}

fn node_labels(random: &mut Random, name: &str) -> Value {
    let mut labels = json!({});
    if random.chance(93) {
        labels["kubernetes.io/hostname"] = json!(name);
    }
    if random.chance(85) {
        let zone = random.pick(&["a", "b", "c"]);
        labels["zone"] = json!(zone);
        if random.chance(85) {
            labels["topology.kubernetes.io/zone"] = json!(zone);
        }
    }
    if random.chance(70) {
        labels["rack"] = json!(random.pick(&["1", "2"]));
    }
    if random.chance(50) {
        labels["disk"] = json!("ssd");
    }
    if random.chance(60) {
        labels["num"] = json!(random.pick(&["2", "4", "7", "x", "007"]));
    }
    labels
}

fn taints(random: &mut Random, rules: &Rules) -> Vec<Value> {
    let taint = |random: &mut Random, key: &str| {
        let effect =
            random.pick(&["PreferNoSchedule", "PreferNoSchedule", "NoSchedule", "NoExecute"]);
        json!({"key": key, "value": random.pick(&["", "x"]), "effect": effect})
    };
    // An API server refuses the same key twice with the same effect.
    let key = if rules.is_unchecked() { random.pick(&["t", "u"]) } else { "t" };
    let mut taints = vec![taint(random, key)];
    if random.chance(30) {
        taints.push(taint(random, "u"));
    }
    taints
}

/// The same size everywhere: kube-scheduler remembers the one that it saw first.
fn images(random: &mut Random) -> Vec<Value> {
    let mut images = vec![];
    if random.chance(50) {
        images.push(json!({"names": ["app:latest"], "sizeBytes": 700_000_000}));
    }
    if random.chance(40) {
        let names = ["db:v1", "db@sha256:0000"];
        images.push(json!({"names": names, "sizeBytes": 1_400_000_123}));
    }
    if random.chance(20) {
        images.push(json!({"names": ["reg:5000/x:latest"], "sizeBytes": 90_000_000}));
    }
    images
}
