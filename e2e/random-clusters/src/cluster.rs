//! A whole cluster.

use serde_json::{Value, json};

use crate::nodes::nodes;
use crate::others::{Other, others};
use crate::pod::placed;
use crate::random::Random;
use crate::rules::{Rule, Rules};
use crate::volumes::GeneratedVolumes;
use crate::{NAMESPACES, key_of, node_name};

const PLACED_MAX: usize = 25;

/// A cluster that does not change while Pods are tried on it.
#[derive(Debug)]
pub struct GeneratedCluster {
    pub nodes: Vec<Value>,
    /// Name and labels; a label that is null is not there.
    pub namespaces: Vec<(&'static str, Value)>,
    /// Services, ReplicaSets, StatefulSets, PodDisruptionBudgets, each with its status.
    pub others: Vec<Other>,
    pub placed: Vec<PlacedPod>,
    /// None, unless they are added.
    pub volumes: GeneratedVolumes,
}

#[derive(Debug, Clone)]
pub struct PlacedPod {
    pub object: Value,
    pub status: Value,
    pub is_terminating: bool,
}

impl PlacedPod {
    /// `namespace/name`.
    pub fn key(&self) -> String {
        key_of(&self.object)
    }
}

impl GeneratedCluster {
    pub fn new(random: &mut Random, rules: &Rules) -> Self {
        // In a roomy cluster Pods are placed and scored, in a cramped one they are rejected and preempt.
        let is_roomy = random.chance(rules.if_unchecked(55, 45));
        let nodes = nodes(random, rules, is_roomy);
        let fewest_placed = if is_roomy { 0 } else { rules.if_unchecked(4, 14) };
        let placed = placed_pods(random, rules, nodes.len(), fewest_placed);
        let namespaces = namespaces(random, rules);
        let others = others(random, rules);
        Self { nodes, namespaces, others, placed, volumes: GeneratedVolumes::default() }
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
            "volumes": self.volumes.to_json(),
        })
    }
}

fn placed_pods(
    random: &mut Random,
    rules: &Rules,
    node_count: usize,
    fewest: usize,
) -> Vec<PlacedPod> {
    let count = random.between(fewest, PLACED_MAX);
    // Among many Pods with terms, one nearly always stands in the way: some clusters have none.
    let sociable_percent = random.pick(&rules.if_unchecked([0, 0, 20, 45], [0, 0, 8, 20]));
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
    let mut conditions = vec![];
    if rules.has(Rule::Resizing) && random.chance(15) {
        add_resize(random, rules, &mut status);
        if random.chance(50) {
            let reason = random.pick(&["Infeasible", "Deferred"]);
            conditions
                .push(json!({"type": "PodResizePending", "status": "True", "reason": reason}));
        }
    }
    let is_terminating = random.chance(rules.if_unchecked(25, 10));
    if rules.is_unchecked() && is_terminating && random.chance(50) {
        let reason = "PreemptionByScheduler";
        conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": reason}));
    }
    if !conditions.is_empty() {
        status["conditions"] = json!(conditions);
    }
    PlacedPod { object, status, is_terminating }
}

/// As a kubelet tells of a Pod whose resources change while it runs.
fn add_resize(random: &mut Random, rules: &Rules, status: &mut Value) {
    if !rules.is_unchecked() || random.chance(60) {
        status["containerStatuses"] = json!([{
            "name": "c0", "image": "app", "imageID": "", "ready": true, "restartCount": 0,
            "resources": {"requests": {"cpu": "700m"}},
            "allocatedResources": {"cpu": "300m", "memory": "100Mi"},
        }]);
    }
    if rules.is_unchecked() && random.chance(40) {
        status["resources"] = json!({"requests": {"cpu": "1200m"}});
        status["allocatedResources"] = json!({"memory": "800Mi"});
    }
}

fn namespaces(random: &mut Random, rules: &Rules) -> Vec<(&'static str, Value)> {
    let team = |team: &str, percent: usize, random: &mut Random| {
        if random.chance(percent) { json!({"team": team}) } else { json!({"team": null}) }
    };
    let teams = [team("a", 90, random), team("b", 70, random), team("c", 50, random)];
    let mut namespaces: Vec<_> = NAMESPACES.into_iter().zip(teams).collect();
    // The Pods of a namespace that is gone may still be there.
    namespaces
        .retain(|(name, _)| !(rules.is_unchecked() && *name != NAMESPACES[0] && random.chance(10)));
    namespaces
}
