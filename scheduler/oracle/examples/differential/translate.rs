//! The same case in the oracle's words. Cases are ours, so what is malformed is a mistake in
//! `generate`, and ends the program.

mod fields;
mod pod;
mod rules;
mod terms;

use model::{
    ClusterNode, ClusterPod, Effect, Node, NodeImage, ObjectKey, PodDisruptionBudget, Quantity,
    Taint, resources,
};
use oracle::{Cluster, ServiceSelector};
use serde_json::Value;

use fields::{int, items, labels, resource_list, small_int, text, texts};
pub use rules::rules;
use terms::label_selector;

pub fn cluster(case: &Value) -> Cluster {
    let pods = items(&case["pods"]).iter().chain(items(&case["nominated"])).map(pod::pod);
    let mut cluster = Cluster::new(items(&case["nodes"]).iter().map(node), pods);
    for namespace in items(&case["namespaces"]) {
        let metadata = &namespace["metadata"];
        cluster.namespaces.insert(text(&metadata["name"]).into(), labels(&metadata["labels"]));
    }
    cluster.budgets = items(&case["budgets"]).iter().map(budget).collect();
    cluster.services = items(&case["services"]).iter().map(service).collect();
    cluster
}

/// The Pod to schedule.
pub fn incoming(case: &Value) -> ClusterPod {
    let mut incoming = pod::pod(&case["pod"]);
    let owner = &case["pod"]["metadata"]["ownerReferences"][0]["name"];
    let mut replica_sets = items(&case["replicaSets"]).iter();
    if let Some(replica_set) = replica_sets.find(|it| it["metadata"]["name"] == *owner) {
        incoming.owner_selector = label_selector(&replica_set["spec"]["selector"]);
    }
    incoming
}

fn node(node: &Value) -> ClusterNode {
    let (metadata, spec, status) = (&node["metadata"], &node["spec"], &node["status"]);
    let allocatable = &status["allocatable"];
    let pods_max: Quantity = text(&allocatable["pods"]).parse().expect("a quantity");
    let mut translated = ClusterNode::new(Node {
        name: text(&metadata["name"]).into(),
        labels: labels(&metadata["labels"]),
        taints: items(&spec["taints"]).iter().map(taint).collect(),
        unschedulable: spec["unschedulable"].as_bool().unwrap_or(false),
        allocatable: resources(&resource_list(allocatable)),
        pods_max: pods_max.value(),
    });
    let image = |image: &Value| NodeImage {
        names: texts(&image["names"]).collect(),
        size_bytes: int(&image["sizeBytes"]),
    };
    translated.images = items(&status["images"]).iter().map(image).collect();
    translated.declared_features = texts(&status["declaredFeatures"]).collect();
    translated
}

fn taint(taint: &Value) -> Taint {
    Taint {
        key: text(&taint["key"]).into(),
        value: text(&taint["value"]).into(),
        effect: effect(&taint["effect"]).expect("a taint has an effect"),
    }
}

fn effect(effect: &Value) -> Option<Effect> {
    match text(effect) {
        "" => None,
        "NoSchedule" => Some(Effect::NoSchedule),
        "NoExecute" => Some(Effect::NoExecute),
        "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
        other => unreachable!("no case has the effect {other}"),
    }
}

fn budget(budget: &Value) -> PodDisruptionBudget {
    let (metadata, status) = (&budget["metadata"], &budget["status"]);
    let disrupted = status["disruptedPods"].as_object().expect("a budget lists them");
    PodDisruptionBudget {
        key: ObjectKey::new(text(&metadata["namespace"]), text(&metadata["name"])),
        selector: label_selector(&budget["spec"]["selector"]),
        disruptions_allowed: small_int(&status["disruptionsAllowed"]),
        disrupted_pods: disrupted.keys().map(|name| name.as_str().into()).collect(),
    }
}

fn service(service: &Value) -> ServiceSelector {
    ServiceSelector {
        namespace: text(&service["metadata"]["namespace"]).into(),
        selector: labels(&service["spec"]["selector"]),
    }
}
