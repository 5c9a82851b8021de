//! The same case in the plain rules' words. Cases are ours, so what is malformed is a mistake of the
//! generator, and ends the program.

mod fields;
mod plugin_args;
mod pod;
mod terms;
mod volumes;

use model::{
    ClusterNode, ClusterPod, Effect, LabelSelector, Node, NodeImage, ObjectKey, Owner, OwnerKind,
    PodDisruptionBudget, Quantity, Taint, resources,
};
use rules::{Cluster, ClusterObjects};
use serde_json::Value;

pub use fields::items;
use fields::{int, labels, resource_list, small_int, text, texts};
pub use plugin_args::rules;
use terms::label_selector;

pub fn cluster(case: &Value) -> Cluster {
    let pods = items(&case["pods"]).iter().chain(items(&case["nominated"])).map(pod::pod);
    let mut cluster = Cluster::new(items(&case["nodes"]).iter().map(node), pods);
    for namespace in items(&case["namespaces"]) {
        let metadata = &namespace["metadata"];
        let name = text(&metadata["name"]).into();
        cluster.objects.namespaces.insert(name, labels(&metadata["labels"]));
    }
    for budget in items(&case["budgets"]).iter().map(budget) {
        cluster.objects.budgets.insert(budget.key.clone(), budget);
    }
    cluster.objects.services = items(&case["services"]).iter().map(service).collect();
    cluster.objects.replica_sets = items(&case["replicaSets"]).iter().map(controller).collect();
    cluster.objects.stateful_sets = items(&case["statefulSets"]).iter().map(controller).collect();
    let mut objects = ClusterObjects::default();
    volumes::put_all(case, &mut objects);
    cluster.insert_objects(objects);
    cluster
}

fn key(object: &Value) -> (&str, &str) {
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

/// The Pod to schedule.
pub fn incoming(case: &Value) -> ClusterPod {
    let mut incoming = pod::pod(&case["pod"]);
    let owners = items(&case["pod"]["metadata"]["ownerReferences"]).iter();
    incoming.owner = owners.filter(|owner| owner["controller"] == true).map(owner).next();
    incoming
}

fn owner(reference: &Value) -> Owner {
    let kind = match text(&reference["kind"]) {
        "ReplicaSet" => OwnerKind::ReplicaSet,
        "StatefulSet" => OwnerKind::StatefulSet,
        other => unreachable!("no case has an owner of the kind {other}"),
    };
    Owner { kind, name: text(&reference["name"]).into() }
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
    translated.images = items(&status["images"]).iter().map(image).map(Into::into).collect();
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

fn service(service: &Value) -> (ObjectKey, LabelSelector) {
    let (namespace, name) = key(service);
    let selector = LabelSelector::of_labels(&labels(&service["spec"]["selector"]));
    (ObjectKey::new(namespace, name), selector)
}

fn controller(object: &Value) -> (ObjectKey, LabelSelector) {
    let (namespace, name) = key(object);
    (ObjectKey::new(namespace, name), label_selector(&object["spec"]["selector"]))
}
