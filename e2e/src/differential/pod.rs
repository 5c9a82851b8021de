//! Random Pods: the one to schedule, and those that are placed already.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rules::{Rule, Rules};
use super::standing::{NEVER_PREEMPTS, PRIORITIES, RUNTIME_CLASSES, priority_class};
use super::terms::{pod_affinity, preferred_nodes, required_nodes, spread_constraints};
use super::{NAMESPACES, OWNERS};
use crate::random::Random;

const MEBIBYTE: usize = 1 << 20;

/// How likely a Pod to schedule makes use of a rule that the case is about, and of any other.
const FOCUS_PERCENT: usize = 85;
const BESIDES_PERCENT: usize = 8;

/// What a Pod makes use of.
struct Taste(BTreeSet<Rule>);

impl Taste {
    /// A case is about few rules: the first filter that rejects a Node hides the others.
    fn of_incoming(random: &mut Random, rules: &Rules) -> Self {
        let enabled: Vec<Rule> = rules.iter().collect();
        let focus: Vec<Rule> = random.list(1, 3, |random| random.pick(&enabled));
        let mut percent = |rule: &Rule| {
            let is_focus = focus.contains(rule);
            random.chance(match rule {
                // What most cases need to be about anything else.
                Rule::Resources => FOCUS_PERCENT,
                Rule::Preemption => 60,
                // They cost time, and are the same every time.
                Rule::Gates => {
                    if is_focus {
                        30
                    } else {
                        0
                    }
                }
                _ if is_focus => FOCUS_PERCENT,
                _ => BESIDES_PERCENT,
            })
        };
        Self(enabled.iter().copied().filter(|rule| percent(rule)).collect())
    }

    fn of_placed(random: &mut Random, rules: &Rules, sociable_percent: usize) -> Self {
        let mut percent = |rule: &Rule| {
            random.chance(match rule {
                Rule::Resources => 90,
                Rule::Preemption => 80,
                Rule::Ports | Rule::ExtendedResources | Rule::InitContainers => 20,
                Rule::Overhead | Rule::PodResources => 10,
                Rule::PodAffinity => sociable_percent,
                _ => 0,
            })
        };
        Self(rules.iter().filter(|rule| percent(rule)).collect())
    }

    fn has(&self, rule: Rule) -> bool {
        self.0.contains(&rule)
    }
}

/// A Pod to schedule, as a user writes it.
pub(super) fn incoming(random: &mut Random, rules: &Rules) -> Value {
    let taste = Taste::of_incoming(random, rules);
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
pub(super) fn placed(random: &mut Random, rules: &Rules, sociable_percent: usize) -> Value {
    let taste = Taste::of_placed(random, rules, sociable_percent);
    let namespace = random.pick(&["team-a", "team-a", "team-a", "team-b", "team-b", NAMESPACES[2]]);
    pod(random, &taste, namespace)
}

fn pod(random: &mut Random, taste: &Taste, namespace: &str) -> Value {
    let mut makers = Containers { taste, sum: Sum::default(), ports: 0 };
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
        spec["resources"] = pod_resources(random, &makers.sum);
    }
    if taste.has(Rule::Overhead) {
        spec["runtimeClassName"] = json!(random.pick(&RUNTIME_CLASSES));
    }
    if taste.has(Rule::PodAffinity) {
        spec["affinity"] = pod_affinity(random, 40);
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

/// What the containers ask for, all together.
#[derive(Default)]
struct Sum {
    cpu_milli: usize,
    memory: usize,
    has_huge_pages: bool,
}

struct Containers<'a> {
    taste: &'a Taste,
    sum: Sum,
    /// How many have a host port: the API server refuses a Pod that asks for the same one twice.
    ports: usize,
}

impl Containers<'_> {
    fn list(&mut self, random: &mut Random, prefix: &str, count_max: usize) -> Vec<Value> {
        let count = random.between(1, count_max);
        (0..count).map(|number| self.container(random, &format!("{prefix}{number}"))).collect()
    }

    fn container(&mut self, random: &mut Random, name: &str) -> Value {
        let images = ["app", "app:latest", "db:v1", "reg:5000/x"];
        let image =
            if self.taste.has(Rule::Images) { random.pick(&images) } else { "never-pulled:1" };
        let mut container =
            json!({"name": name, "image": image, "resources": self.resources(random)});
        if self.taste.has(Rule::Ports) && random.chance(70) {
            let first = 80 + 2 * self.ports;
            self.ports += 1;
            container["ports"] = json!([{
                "containerPort": 80,
                "hostPort": random.between(first, first + 1),
                "hostIP": random.pick(&["", "", "10.0.0.1", "10.0.0.2"]),
                "protocol": random.pick(&["TCP", "TCP", "UDP"]),
            }]);
        }
        container
    }

    fn resources(&mut self, random: &mut Random) -> Value {
        let mut requests = json!({});
        let mut limits = json!({});
        if self.taste.has(Rule::Resources) {
            if random.chance(75) {
                let milli = random.below(12) * 100;
                self.sum.cpu_milli += milli;
                requests["cpu"] = json!(format!("{milli}m"));
            }
            if random.chance(75) {
                let mebibytes = random.below(12) * 100 * MEBIBYTE;
                let bytes =
                    random.pick(&[mebibytes, mebibytes, random.clone().below(2_000_000_000)]);
                self.sum.memory += bytes;
                requests["memory"] = json!(bytes.to_string());
            }
        }
        if self.taste.has(Rule::ExtendedResources) {
            if random.chance(40) {
                requests["ephemeral-storage"] = json!(format!("{}Mi", random.below(10) * 50));
            }
            if random.chance(60) {
                let count = json!(random.below(3).to_string());
                (requests["example.com/gpu"], limits["example.com/gpu"]) = (count.clone(), count);
            }
            if random.chance(25) {
                // Only beside a request for one of the others.
                let milli = 100;
                self.sum.cpu_milli += milli;
                self.sum.has_huge_pages = true;
                requests["cpu"] = json!(format!("{milli}m"));
                let size = json!("4Mi");
                (requests["hugepages-2Mi"], limits["hugepages-2Mi"]) = (size.clone(), size);
            }
        }
        json!({"requests": requests, "limits": limits})
    }
}

/// Never less than the containers ask for together.
fn pod_resources(random: &mut Random, sum: &Sum) -> Value {
    let cpu = format!("{}m", sum.cpu_milli + random.between(1, 6) * 100);
    let memory = (sum.memory + random.between(1, 6) * 100 * MEBIBYTE).to_string();
    if !sum.has_huge_pages && random.chance(15) {
        let huge = json!({"cpu": cpu, "hugepages-2Mi": "4Mi"});
        return json!({"requests": huge, "limits": {"hugepages-2Mi": "4Mi"}});
    }
    let requests = random.pick(&[
        json!({"cpu": cpu}),
        json!({"memory": memory}),
        json!({"cpu": cpu, "memory": memory}),
    ]);
    json!({"requests": requests})
}

fn toleration(random: &mut Random) -> Value {
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
fn add_wishes(random: &mut Random, taste: &Taste, spec: &mut Value) {
    if taste.has(Rule::Taints) || taste.has(Rule::Unschedulable) {
        spec["tolerations"] = json!(random.list(0, 2, toleration));
    }
    if taste.has(Rule::NodeSelector) {
        spec["nodeSelector"] =
            random.pick(&[json!({"zone": "a"}), json!({"disk": "ssd"}), json!({"rack": "1"})]);
    }
    if taste.has(Rule::NodeAffinity) {
        let kind = random.below(3);
        if kind != 0 {
            spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                required_nodes(random);
        }
        if kind != 1 {
            spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                preferred_nodes(random);
        }
    }
    if taste.has(Rule::Spread) {
        spec["topologySpreadConstraints"] = json!(spread_constraints(random));
    }
    if taste.has(Rule::Features) {
        // It needs a feature that a Node must declare.
        spec["containers"][0]["restartPolicy"] = json!("Never");
        spec["containers"][0]["restartPolicyRules"] = json!([{
            "action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]},
        }]);
    }
    if taste.has(Rule::Images) && random.chance(20) {
        spec["volumes"] = json!([{"name": "v", "image": {"reference": "db:v1"}}]);
    }
    if taste.has(Rule::Gates) {
        spec["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    }
    if taste.has(Rule::Preemption) {
        let important = priority_class(PRIORITIES - 1);
        let class = random.pick(&[important.clone(), important, priority_class(PRIORITIES - 2)]);
        let class = if random.chance(7) { NEVER_PREEMPTS.to_owned() } else { class };
        spec["priorityClassName"] = json!(class);
    }
}
