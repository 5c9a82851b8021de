//! Random Pods: the one to schedule, and those that are placed already.

use serde_json::{Value, json};

use crate::classes::{NEVER_PREEMPTS, PRIORITIES, RUNTIME_CLASSES, priority_class};
use crate::containers::Containers;
use crate::random::Random;
use crate::rules::{Rule, Rules};
use crate::terms::{pod_affinity, preferred_nodes, required_nodes, spread_constraints};
use crate::{NAMESPACES, OWNERS};

/// How likely a Pod to schedule makes use of a rule that the case is about, and of any other.
const FOCUS_PERCENT: usize = 85;
const BESIDES_PERCENT: usize = 8;
/// Unchecked Pods are many and cheap, and some quirks of kube-scheduler take several rules at once.
const BESIDES_PERCENT_UNCHECKED: usize = 20;

/// A case is about few rules: the first filter that rejects a Node hides the others.
fn taste_of_incoming(random: &mut Random, rules: &Rules) -> Rules {
    let enabled: Vec<Rule> = rules.iter().collect();
    let focus: Vec<Rule> = random.list(1, 3, |random| random.pick(&enabled));
    rules.chosen(|rule| {
        let is_focus = focus.contains(&rule);
        random.chance(match rule {
            // What most cases need to be about anything else.
            Rule::Resources => FOCUS_PERCENT,
            Rule::Preemption => rules.if_unchecked(90, 60),
            // They cost time, and are the same every time.
            Rule::Gates => {
                if is_focus {
                    30
                } else {
                    0
                }
            }
            _ if is_focus => FOCUS_PERCENT,
            _ => rules.if_unchecked(BESIDES_PERCENT_UNCHECKED, BESIDES_PERCENT),
        })
    })
}

fn taste_of_placed(random: &mut Random, rules: &Rules, sociable_percent: usize) -> Rules {
    rules.chosen(|rule| {
        random.chance(match rule {
            Rule::Resources => 90,
            Rule::Preemption => 80,
            Rule::Ports | Rule::ExtendedResources | Rule::InitContainers => 20,
            Rule::Overhead | Rule::PodResources => 10,
            Rule::PodAffinity => sociable_percent,
            // They mean nothing to a Pod that has its Node: neither scheduler may look at them.
            Rule::Taints | Rule::Images => rules.if_unchecked(30, 0),
            _ => 0,
        })
    })
}

/// A Pod to schedule, as a user writes it.
pub fn incoming(random: &mut Random, rules: &Rules) -> Value {
    let taste = taste_of_incoming(random, rules);
    let namespace = random.pick(&["team-a", "team-a", "team-b"]);
    let mut pod = pod(random, &taste, namespace);
    add_wishes(random, &taste, &mut pod["spec"]);
    if taste.has(Rule::DefaultSpread) {
        let (kind, name) = random.pick(&OWNERS);
        // Owners that are not there, and owners without say.
        let name = if random.chance(90) { name } else { "gone" };
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": kind, "name": name,
            "uid": "00000000-0000-4000-8000-000000000000", "controller": random.chance(90),
        }]);
    }
    pod
}

/// A Pod that runs somewhere already; the caller says where.
pub fn placed(random: &mut Random, rules: &Rules, sociable_percent: usize) -> Value {
    let taste = taste_of_placed(random, rules, sociable_percent);
    let namespace = random.pick(&["team-a", "team-a", "team-a", "team-b", "team-b", NAMESPACES[2]]);
    let mut pod = pod(random, &taste, namespace);
    if taste.has(Rule::Taints) {
        pod["spec"]["tolerations"] = json!([toleration(random, &taste)]);
    }
    pod
}

fn pod(random: &mut Random, taste: &Rules, namespace: &str) -> Value {
    let mut makers = Containers::new(taste);
    let mut spec = json!({"containers": makers.list(random, "c", 2)});
    if taste.has(Rule::InitContainers) {
        let mut inits = makers.list(random, "i", 3);
        for init in &mut inits {
            if random.chance(45) {
                init["restartPolicy"] = json!("Always");
            }
        }
        spec["initContainers"] = json!(inits);
    }
    if taste.has(Rule::PodResources) {
        spec["resources"] = makers.pod_resources(random);
    }
    if taste.has(Rule::Overhead) {
        spec["runtimeClassName"] = json!(random.pick(&RUNTIME_CLASSES));
    }
    if taste.has(Rule::PodAffinity) {
        spec["affinity"] = pod_affinity(random, taste, 40);
    }
    if taste.has(Rule::Preemption) {
        spec["priorityClassName"] = json!(priority_class(random.below(PRIORITIES)));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "labels": labels(random)},
        "spec": spec,
    })
}

fn labels(random: &mut Random) -> Value {
    let mut labels = json!({});
    if random.chance(85) {
        labels["app"] = json!(random.pick(&["web", "web", "db"]));
    }
    if random.chance(50) {
        labels["rev"] = json!(random.pick(&["1", "2"]));
    }
    labels
}

fn toleration(random: &mut Random, taste: &Rules) -> Value {
    if taste.is_unchecked() && random.chance(15) {
        // Of a feature that is off by default: tolerates nothing.
        return json!({"key": "t", "operator": "Gt", "value": "1"});
    }
    random.pick(&[
        json!({"operator": "Exists"}),
        json!({"key": "t", "operator": "Exists"}),
        json!({"key": "u", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}),
        json!({"key": "t", "value": "x", "effect": "NoSchedule"}),
        json!({"key": "u", "value": ""}),
        json!({"key": "t", "operator": "Exists", "effect": "PreferNoSchedule"}),
        json!({
            "key": "node.kubernetes.io/unschedulable", "operator": "Exists",
            "effect": "NoSchedule",
        }),
    ])
}

/// What only matters for a Pod that is yet to be placed.
fn add_wishes(random: &mut Random, taste: &Rules, spec: &mut Value) {
    if taste.has(Rule::Taints) || taste.has(Rule::Unschedulable) {
        spec["tolerations"] = json!(random.list(0, 2, |random| toleration(random, taste)));
    }
    if taste.has(Rule::NodeSelector) {
        spec["nodeSelector"] =
            random.pick(&[json!({"zone": "a"}), json!({"disk": "ssd"}), json!({"rack": "1"})]);
    }
    if taste.has(Rule::NodeAffinity) {
        let kind = random.below(3);
        if kind != 0 {
            spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                required_nodes(random, taste);
        }
        if kind != 1 {
            spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                preferred_nodes(random, taste);
        }
    }
    if taste.has(Rule::Spread) {
        spec["topologySpreadConstraints"] = json!(spread_constraints(random, taste));
    }
    if taste.has(Rule::Features) {
        // It needs a feature that a Node must declare.
        spec["containers"][0]["restartPolicy"] = json!("Never");
        spec["containers"][0]["restartPolicyRules"] = json!([{
            "action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]},
        }]);
    }
    if taste.has(Rule::Features) && taste.is_unchecked() && random.chance(50) {
        // Together they need a feature of a Node; an API server refuses them by default.
        spec["hostNetwork"] = json!(true);
        spec["hostUsers"] = json!(false);
    }
    if taste.has(Rule::Images) && random.chance(20) {
        let reference = if taste.is_unchecked() { random.pick(&["app", "db:v1"]) } else { "db:v1" };
        spec["volumes"] = json!([{"name": "v", "image": {"reference": reference}}]);
    }
    if taste.has(Rule::Gates) {
        spec["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    }
    // Mostly important, because an important Pod preempts others.
    if taste.has(Rule::Preemption) && !(taste.is_unchecked() && random.chance(25)) {
        let important = priority_class(PRIORITIES - 1);
        let class = random.pick(&[important.clone(), important, priority_class(PRIORITIES - 2)]);
        let class = if random.chance(7) { NEVER_PREEMPTS.to_owned() } else { class };
        spec["priorityClassName"] = json!(class);
    }
}
