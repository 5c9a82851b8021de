//! Random clusters, small and crowded: a few labels, taints and priorities that meet all the time.

use serde_json::{Value, json};

use super::pod::placed;
use super::rules::{Rule, Rules};
use super::terms::label_selector;
use super::{NAMESPACES, OWNERS, node_name};
use crate::random::Random;

const PLACED_MAX: usize = 25;

/// A cluster that does not change while Pods are tried on it.
#[derive(Debug)]
pub(super) struct GeneratedCluster {
    pub nodes: Vec<Value>,
    /// Name and labels.
    pub namespaces: Vec<(&'static str, Value)>,
    /// Services, ReplicaSets, StatefulSets, PodDisruptionBudgets, each with its status.
    pub others: Vec<Other>,
    pub placed: Vec<PlacedPod>,
}

#[derive(Debug)]
pub(super) struct Other {
    /// Of its resource, without the namespace: `apis/apps/v1`, `replicasets`.
    pub group: &'static str,
    pub resource: &'static str,
    pub object: Value,
    /// Written after it was created, if it is not null.
    pub status: Value,
}

#[derive(Debug, Clone)]
pub(super) struct PlacedPod {
    pub object: Value,
    pub status: Value,
    pub is_terminating: bool,
}

impl PlacedPod {
    /// `namespace/name`.
    pub fn key(&self) -> String {
        super::key_of(&self.object)
    }
}

impl GeneratedCluster {
    pub fn new(random: &mut Random, rules: &Rules) -> Self {
        // In a roomy cluster Pods are placed and scored, in a cramped one they are rejected and preempt.
        let is_roomy = random.chance(45);
        let nodes = nodes(random, rules, is_roomy);
        let fewest_placed = if is_roomy { 0 } else { 14 };
        let placed = placed_pods(random, rules, nodes.len(), fewest_placed);
        Self { nodes, namespaces: namespaces(random), others: others(random, rules), placed }
    }

    /// Everything, to find out why a case differs.
    pub fn to_json(&self) -> Value {
        let pods = self.placed.iter().map(|pod| {
            json!({"object": pod.object, "status": pod.status, "terminating": pod.is_terminating})
        });
        let others = self.others.iter().map(|other| {
            json!({"resource": other.resource, "object": other.object, "status": other.status})
        });
        json!({
            "nodes": self.nodes,
            "namespaces": self.namespaces,
            "others": others.collect::<Vec<_>>(),
            "placed": pods.collect::<Vec<_>>(),
        })
    }
}

fn nodes(random: &mut Random, rules: &Rules, is_roomy: bool) -> Vec<Value> {
    let scale = if is_roomy { 5 } else { 1 };
    let count = if random.chance(2) { 0 } else { random.pick(&[3, 4, 5, 6, 6, 7, 7, 8, 8]) };
    // A taint only matters on a Node that would be taken without it: some clusters have many.
    let tainted_percent = random.pick(&[10, 25, 70]);
    (0..count)
        .map(|number| {
            let mut node = node(random, rules, &node_name(number), scale);
            if rules.has(Rule::Taints) && random.chance(tainted_percent) {
                node["spec"]["taints"] = json!(taints(random));
            }
            node
        })
        .collect()
}

fn node(random: &mut Random, rules: &Rules, name: &str, scale: usize) -> Value {
    let mut allocatable = json!({
        "cpu": format!("{}m", (500 + random.below(8) * 700) * scale),
        "memory": format!("{}Mi", (500 + random.below(8) * 900) * scale),
        "pods": (random.between(2, 12) * scale).to_string(),
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
    if rules.has(Rule::Features) && random.chance(60) {
        status["declaredFeatures"] = json!(["RestartAllContainersOnContainerExits"]);
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

fn taints(random: &mut Random) -> Vec<Value> {
    let taint = |random: &mut Random, key: &str| {
        let effect =
            random.pick(&["PreferNoSchedule", "PreferNoSchedule", "NoSchedule", "NoExecute"]);
        json!({"key": key, "value": random.pick(&["", "x"]), "effect": effect})
    };
    let mut taints = vec![taint(random, "t")];
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

fn placed_pods(
    random: &mut Random,
    rules: &Rules,
    node_count: usize,
    fewest: usize,
) -> Vec<PlacedPod> {
    let count = random.between(fewest, PLACED_MAX);
    // Among many Pods with terms, one nearly always stands in the way: some clusters have none.
    let sociable_percent = random.pick(&[0, 0, 8, 20]);
    (0..count)
        .map(|number| placed_pod(random, rules, number, sociable_percent, node_count))
        .collect()
}

fn placed_pod(
    random: &mut Random,
    rules: &Rules,
    number: usize,
    sociable_percent: usize,
    node_count: usize,
) -> PlacedPod {
    let mut object = placed(random, rules, sociable_percent);
    object["metadata"]["name"] = json!(format!("p{number}"));
    // Now and then on a Node that is gone.
    let end = node_count.max(1) + usize::from(random.chance(3));
    object["spec"]["nodeName"] = json!(node_name(random.below(end)));
    // No two start in the same second: the choice between them would be kube-scheduler's secret.
    let minute = random.below(60);
    let mut status = json!({
        "phase": "Running",
        "startTime": format!("2026-01-01T00:{minute:02}:{number:02}Z"),
    });
    if rules.has(Rule::Resizing) && random.chance(15) {
        add_resize(random, &mut status);
    }
    PlacedPod { object, status, is_terminating: random.chance(10) }
}

/// As a kubelet tells of a Pod whose resources change while it runs.
fn add_resize(random: &mut Random, status: &mut Value) {
    status["containerStatuses"] = json!([{
        "name": "c0", "image": "app", "imageID": "", "ready": true, "restartCount": 0,
        "resources": {"requests": {"cpu": "700m"}},
        "allocatedResources": {"cpu": "300m", "memory": "100Mi"},
    }]);
    if random.chance(50) {
        let reason = random.pick(&["Infeasible", "Deferred"]);
        status["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
}

fn namespaces(random: &mut Random) -> Vec<(&'static str, Value)> {
    let team = |team: &str, percent: usize, random: &mut Random| {
        if random.chance(percent) { json!({"team": team}) } else { json!({"team": null}) }
    };
    let teams = [team("a", 90, random), team("b", 70, random), team("c", 50, random)];
    NAMESPACES.into_iter().zip(teams).collect()
}

fn others(random: &mut Random, rules: &Rules) -> Vec<Other> {
    let mut others = vec![];
    if rules.has(Rule::DefaultSpread) {
        others.extend(random.list(0, 2, service).into_iter().enumerate().map(|(number, spec)| {
            let metadata = json!({"namespace": "team-a", "name": format!("s{number}")});
            let object = json!({"metadata": metadata, "spec": spec});
            Other { group: "api/v1", resource: "services", object, status: Value::Null }
        }));
        for namespace in ["team-a", "team-b"] {
            for (kind, name) in OWNERS {
                if random.chance(70) {
                    others.push(owner(random, namespace, kind, name));
                }
            }
        }
    }
    if rules.has(Rule::Preemption) {
        let count = random.below(4);
        others.extend((0..count).map(|number| budget(random, number)));
    }
    others
}

fn service(random: &mut Random) -> Value {
    let selector = random.pick(&[json!({"app": "web"}), json!({"app": "db"}), json!({"rev": "1"})]);
    json!({"selector": selector, "ports": [{"port": 80}]})
}

fn owner(random: &mut Random, namespace: &str, kind: &str, name: &str) -> Other {
    let both = json!({"key": "app", "operator": "In", "values": ["web", "db"]});
    let selector = random.pick(&[
        json!({"matchLabels": {"app": "web"}}),
        json!({"matchExpressions": [both]}),
        json!({"matchLabels": {"rev": "1"}}),
    ]);
    let template = json!({
        "metadata": {"labels": {"app": "web", "rev": "1"}},
        "spec": {"containers": [{"name": "c", "image": "app"}]},
    });
    let mut spec = json!({"selector": selector, "template": template});
    let resource = match kind {
        "StatefulSet" => {
            spec["serviceName"] = json!("s0");
            "statefulsets"
        }
        _ => "replicasets",
    };
    let metadata = json!({"namespace": namespace, "name": name});
    let object = json!({"metadata": metadata, "spec": spec});
    Other { group: "apis/apps/v1", resource, object, status: Value::Null }
}

fn budget(random: &mut Random, number: usize) -> Other {
    let namespace = random.pick(&["team-a", "team-a", "team-b"]);
    let disrupted =
        if random.chance(20) { json!({"p1": "2026-01-01T00:00:00Z"}) } else { json!({}) };
    Other {
        group: "apis/policy/v1",
        resource: "poddisruptionbudgets",
        object: json!({
            "metadata": {"namespace": namespace, "name": format!("b{number}")},
            "spec": {"selector": label_selector(random), "maxUnavailable": 1},
        }),
        status: json!({
            "disruptionsAllowed": random.below(3), "disruptedPods": disrupted,
            "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3, "observedGeneration": 1,
        }),
    }
}
