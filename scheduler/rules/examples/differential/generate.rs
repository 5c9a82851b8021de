//! Random clusters, small and crowded: a few labels, taints and priorities that meet all the time.
//!
//! Objects are as the API server would hold them, except that some carry values it would refuse:
//! kube-scheduler has an answer for those too.

mod config;
mod pod;
mod terms;

use serde_json::{Value, json};

use crate::random::Random;
use pod::{Role, pod};
use terms::label_selector;

/// The names of Nodes that Pods ask for; in most clusters, some of them do not exist.
const NODE_NAMES: u64 = 6;

/// The case of this seed, as the Go program reads it.
pub fn case(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let nodes = nodes(random);
    let node_count = nodes.len() as u64;
    let mut incoming = pod(random, "incoming", Role::Incoming);
    if random.chance(15) {
        incoming["status"]["nominatedNodeName"] = json!(node_name(random.below(NODE_NAMES)));
    }
    let mut replica_sets = vec![];
    if random.chance(40) {
        let metadata = json!({"namespace": "team-a", "name": "rs"});
        let selector = label_selector(random);
        replica_sets.push(json!({"metadata": metadata, "spec": {"selector": selector}}));
        incoming["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "u", "controller": true,
            "name": random.pick(&["rs", "rs", "rs", "gone"]),
        }]);
    }
    json!({
        "seed": seed,
        "config": config::config(random),
        "nodes": nodes,
        "pods": placed_pods(random, node_count),
        "nominated": nominated_pods(random, node_count),
        "namespaces": namespaces(random),
        "budgets": budgets(random),
        "services": services(random),
        "replicaSets": replica_sets,
        "pod": incoming,
    })
}

fn node_name(number: u64) -> String {
    format!("n{number}")
}

fn nodes(random: &mut Random) -> Vec<Value> {
    // In a roomy cluster Pods are placed and scored, in a cramped one they are rejected and preempt.
    let roomy = random.chance(55);
    let (count_max, scale) = if roomy { (9, 5) } else { (6, 1) };
    let count = if random.chance(1) { 0 } else { random.between(1, count_max) };
    (0..count).map(|number| node(random, &node_name(number), scale)).collect()
}

fn node(random: &mut Random, name: &str, scale: u64) -> Value {
    let mut node = json!({
        "metadata": {"name": name, "labels": node_labels(random, name)},
        "spec": {},
        "status": {
            "allocatable": {
                "cpu": format!("{}m", (500 + random.below(8) * 700) * scale),
                "memory": format!("{}Mi", (500 + random.below(8) * 900) * scale),
                "pods": (random.between(1, 12) * scale).to_string(),
                "ephemeral-storage": "1Gi",
            },
            "images": images(random),
        },
    });
    if random.chance(50) {
        node["status"]["allocatable"]["example.com/gpu"] = json!(random.below(5).to_string());
    }
    if random.chance(20) {
        node["status"]["allocatable"]["hugepages-2Mi"] = json!("8Mi");
    }
    if random.chance(12) {
        let first = taint(random, &["PreferNoSchedule", "NoSchedule", "NoExecute"]);
        let more = random.list(0, 1, |random| taint(random, &["PreferNoSchedule"]));
        node["spec"]["taints"] = json!([vec![first], more].concat());
    }
    if random.chance(8) {
        node["spec"]["unschedulable"] = json!(true);
    }
    if random.chance(50) {
        node["status"]["declaredFeatures"] = json!(["UserNamespacesHostNetworkSupport"]);
    }
    node
}

fn node_labels(random: &mut Random, name: &str) -> Value {
    let mut labels = json!({});
    if random.chance(90) {
        labels["kubernetes.io/hostname"] = json!(name);
    }
    if random.chance(80) {
        let zone = random.pick(&["a", "b", "c"]);
        labels["zone"] = json!(zone);
        if random.chance(80) {
            labels["topology.kubernetes.io/zone"] = json!(zone);
        }
    }
    if random.chance(60) {
        labels["rack"] = json!(random.pick(&["1", "2"]));
    }
    if random.chance(50) {
        labels["disk"] = json!("ssd");
    }
    if random.chance(50) {
        labels["num"] = json!(random.pick(&["2", "4", "7", "x"]));
    }
    labels
}

fn taint(random: &mut Random, effects: &[&str]) -> Value {
    let (key, value) = (random.pick(&["t", "u"]), random.pick(&["", "x"]));
    json!({"key": key, "value": value, "effect": random.pick(effects)})
}

fn images(random: &mut Random) -> Vec<Value> {
    let mut images = vec![];
    if random.chance(50) {
        images.push(json!({"names": ["app:latest"], "sizeBytes": 700_000_000}));
    }
    if random.chance(30) {
        images.push(json!({"names": ["db:v1", "db@sha256:1"], "sizeBytes": 2_000_000_123}));
    }
    images
}

fn placed_pods(random: &mut Random, node_count: u64) -> Vec<Value> {
    let count = random.between(4, 17);
    // Among many Pods with terms, one nearly always stands in the way: some clusters have none.
    let busy_percent = if random.chance(25) { 0 } else { 18 };
    let role = Role::Other { busy_percent };
    (0..count).map(|number| placed_pod(random, number, role, node_count)).collect()
}

fn placed_pod(random: &mut Random, number: u64, role: Role, node_count: u64) -> Value {
    let mut placed = pod(random, &format!("p{number}"), role);
    // Now and then on a Node that is gone.
    let end = node_count.max(1) + u64::from(random.chance(3));
    placed["spec"]["nodeName"] = json!(node_name(random.below(end)));
    let status = &mut placed["status"];
    status["phase"] = json!("Running");
    // No two start in the same second: the choice between them would be kube-scheduler's secret.
    let minute = random.below(60);
    status["startTime"] = json!(format!("2026-01-01T00:{minute:02}:{number:02}Z"));
    if random.chance(10) {
        status["containerStatuses"] = json!([{
            "name": "c0",
            "resources": {"requests": {"cpu": "700m"}},
            "allocatedResources": {"cpu": "300m", "memory": "100Mi"},
        }]);
    }
    if random.chance(8) {
        status["resources"] = json!({"requests": {"cpu": "1200m"}});
        status["allocatedResources"] = json!({"memory": "800Mi"});
    }
    let mut conditions = vec![];
    if random.chance(10) {
        let reason = random.pick(&["Infeasible", "Deferred"]);
        conditions.push(json!({"type": "PodResizePending", "status": "True", "reason": reason}));
    }
    if random.chance(25) {
        if random.chance(50) {
            let reason = "PreemptionByScheduler";
            conditions
                .push(json!({"type": "DisruptionTarget", "status": "True", "reason": reason}));
        }
        placed["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        // The pretended API server refuses a Pod that terminates and waits for nothing.
        placed["metadata"]["finalizers"] = json!(["x/y"]);
    }
    placed["status"]["conditions"] = json!(conditions);
    placed
}

fn nominated_pods(random: &mut Random, node_count: u64) -> Vec<Value> {
    if node_count == 0 || !random.chance(25) {
        return vec![];
    }
    let mut nominated = pod(random, "nominated", Role::Other { busy_percent: 40 });
    // Only one of at least the same priority counts.
    nominated["spec"]["priority"] = json!(random.between(1, 4));
    // Behind a gate, it is not in the queue before the Pod that the case is about.
    nominated["spec"]["schedulingGates"] = json!([{"name": "g"}]);
    nominated["status"]["nominatedNodeName"] = json!(node_name(random.below(node_count)));
    vec![nominated]
}

fn namespaces(random: &mut Random) -> Vec<Value> {
    let mut namespaces = vec![json!({"metadata": {"name": "team-a", "labels": {"team": "a"}}})];
    if random.chance(90) {
        let labels = if random.chance(70) { json!({"team": "b"}) } else { json!({}) };
        namespaces.push(json!({"metadata": {"name": "team-b", "labels": labels}}));
    }
    namespaces
}

fn budgets(random: &mut Random) -> Vec<Value> {
    let count = random.below(3);
    let budget = |number| {
        let namespace = random.pick(&["team-a", "team-b"]);
        let disrupted =
            if random.chance(20) { json!({"p1": "2026-01-01T00:00:00Z"}) } else { json!({}) };
        json!({
            "metadata": {"namespace": namespace, "name": format!("b{number}")},
            "spec": {"selector": label_selector(random)},
            "status": {"disruptionsAllowed": random.below(3), "disruptedPods": disrupted},
        })
    };
    (0..count).map(budget).collect()
}

fn services(random: &mut Random) -> Vec<Value> {
    random.list(0, 1, |random| {
        let app = random.pick(&["web", "db"]);
        let metadata = json!({"namespace": "team-a", "name": "s"});
        json!({"metadata": metadata, "spec": {"selector": {"app": app}}})
    })
}
