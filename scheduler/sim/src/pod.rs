//! The rules of the real server for Pods: defaults, priority, what may change, and binding.

use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, ResourceType, Rules};
use crate::json::{as_map, default, list, metadata, section, text};
use crate::objects::now;
use crate::refusal::Refusal;
use crate::store::Store;
use crate::stored::Key;

/// What an update of a Pod may change.
const MAY_CHANGE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Defaults, priority and first status of a new Pod.
pub(crate) fn prepare_new(
    catalog: &Catalog,
    store: &Store,
    ty: &ResourceType,
    name: &str,
    pod: &mut Value,
) -> Result<(), Refusal> {
    check_containers(ty, name, pod)?;
    let gated = !list(pod, "/spec/schedulingGates").is_empty();
    if gated && !text(pod, "/spec/nodeName").is_empty() {
        let why = "Forbidden: cannot be set until all schedulingGates have been cleared";
        return Err(Refusal::invalid(ty, name, "spec.nodeName", why));
    }
    set_priority(catalog, store, ty, name, pod)?;
    set_defaults(pod);
    let mut status = json!({ "phase": "Pending", "qosClass": qos_class(pod) });
    if gated {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": now(),
        }]);
    }
    as_map(pod).insert("status".to_owned(), status);
    Ok(())
}

/// Refuses changes of the spec that the real server refuses.
pub(crate) fn check_update(
    ty: &ResourceType,
    name: &str,
    subresource: &str,
    old: &Value,
    new: &mut Value,
) -> Result<(), Refusal> {
    if subresource == "status" {
        let nominated = text(new, "/status/nominatedNodeName");
        let changed = nominated != text(old, "/status/nominatedNodeName");
        if changed && !nominated.is_empty() && !text(old, "/spec/nodeName").is_empty() {
            let why = "Forbidden: may not be set on pods that are already bound to a node";
            return Err(Refusal::invalid(ty, name, "status.nominatedNodeName", why));
        }
        let qos_class = text(old, "/status/qosClass");
        default(section(new, "status"), "qosClass", qos_class);
        return Ok(());
    }
    set_defaults(new);
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            default(section(new, "spec"), field, value.clone());
        }
    }
    let wrong = wrong_changes(old, new);
    if wrong.is_empty() {
        return Ok(());
    }
    let wrong: Vec<(&str, String)> =
        wrong.iter().map(|(field, why)| (field.as_str(), why.clone())).collect();
    Err(Refusal::invalid_fields(ty, name, &wrong))
}

/// Fields that may not change as they do, and why.
fn wrong_changes(old: &Value, new: &Value) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let seconds = |pod: &Value| pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let why = match (seconds(old), seconds(new)) {
        (_, Some(after)) if after < 0 => {
            Some(format!("{after}: must be between 0 and 2147483647, inclusive"))
        }
        (Some(before), Some(after)) if after > before => {
            Some(format!("{after}: must be less than or equal to previous value"))
        }
        (Some(_), None) => {
            Some("null: must not update from a positive integer to nil value".to_owned())
        }
        _ => None,
    };
    if let Some(why) = why {
        // The real server looks no further either.
        return vec![("spec.activeDeadlineSeconds".to_owned(), format!("Invalid value: {why}"))];
    }
    let (tolerations, now_has) = (timeless(old), timeless(new));
    if !tolerations.iter().all(|toleration| now_has.contains(toleration)) {
        let why = "Forbidden: existing toleration can not be modified except its tolerationSeconds";
        wrong.push(("spec.tolerations".to_owned(), why.to_owned()));
    }
    let (gates, left) = (list(old, "/spec/schedulingGates"), list(new, "/spec/schedulingGates"));
    for (index, gate) in left.iter().enumerate().filter(|(_, gate)| !gates.contains(gate)) {
        let why = format!(
            "Forbidden: only deletion is allowed, but found new scheduling gate '{}'",
            text(gate, "/name")
        );
        wrong.push((format!("spec.schedulingGates[{index}].name"), why));
    }
    if fixed_part(old, !gates.is_empty()) != fixed_part(new, !gates.is_empty()) {
        wrong.push(("spec".to_owned(), format!("Forbidden: {MAY_CHANGE}")));
    }
    wrong
}

/// A Pod's tolerations without their duration, which may change.
fn timeless(pod: &Value) -> Vec<Value> {
    let mut tolerations = list(pod, "/spec/tolerations").to_vec();
    for toleration in &mut tolerations {
        as_map(toleration).remove("tolerationSeconds");
    }
    tolerations
}

/// Sets the node of a Pod, as `setPodNodeAndMetadata` of the real server does. The preconditions
/// come first, so that a repeated Binding with a resourceVersion says "precondition failed".
pub(crate) fn bind(
    ty: &ResourceType,
    old: &Value,
    binding: &Value,
    topology: &Map<String, Value>,
) -> Result<Value, Refusal> {
    let name = text(old, "/metadata/name");
    for (what, pointer) in
        [("UID", "/metadata/uid"), ("ResourceVersion", "/metadata/resourceVersion")]
    {
        let (asked, is) = (text(binding, pointer), text(old, pointer));
        if !asked.is_empty() && asked != is {
            let key = Key::new(text(old, "/metadata/namespace"), name);
            return Err(Refusal::precondition(ty, &key, what, asked, is));
        }
    }
    let refuse = |why: String| Err(Refusal::conflict("pods/binding", name, why));
    if !text(old, "/metadata/deletionTimestamp").is_empty() {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text(old, "/spec/nodeName");
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node \"{node}\""));
    }
    if !list(old, "/spec/schedulingGates").is_empty() {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut pod = old.clone();
    section(&mut pod, "spec").insert("nodeName".to_owned(), json!(text(binding, "/target/name")));
    section(&mut pod, "status").remove("nominatedNodeName");
    let given = |pointer: &str| binding.pointer(pointer).and_then(Value::as_object);
    let labels = topology.iter().chain(given("/metadata/labels").into_iter().flatten());
    let annotations = given("/metadata/annotations").into_iter().flatten();
    merge_texts(metadata(&mut pod), "labels", labels);
    merge_texts(metadata(&mut pod), "annotations", annotations);
    set_scheduled(&mut pod);
    Ok(pod)
}

/// The topology labels of a node that a Binding hands on to its Pod.
pub(crate) fn topology_labels(catalog: &Catalog, store: &Store, node: &str) -> Map<String, Value> {
    const HANDED_ON: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
    let nodes = catalog.with_rules(Rules::Node);
    let Ok(node) = store.get(nodes, &Key::new("", node)) else { return Map::new() };
    let labels = node.labels.iter().filter(|(key, _)| HANDED_ON.contains(&key.as_str()));
    labels.map(|(key, value)| (key.clone(), json!(value))).collect()
}

fn merge_texts<'a>(
    metadata: &mut Map<String, Value>,
    field: &str,
    new: impl Iterator<Item = (&'a String, &'a Value)>,
) {
    let mut new = new.map(|(key, value)| (key.clone(), value.clone())).peekable();
    if new.peek().is_some() {
        as_map(metadata.entry(field).or_insert(Value::Null)).extend(new);
    }
}

fn set_scheduled(pod: &mut Value) {
    let conditions = section(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    let scheduled =
        json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now() });
    if let Value::Array(conditions) = conditions {
        match conditions.iter_mut().find(|condition| text(condition, "/type") == "PodScheduled") {
            Some(condition) => *condition = scheduled,
            None => conditions.push(scheduled),
        }
    }
}

fn check_containers(ty: &ResourceType, name: &str, pod: &Value) -> Result<(), Refusal> {
    let containers = list(pod, "/spec/containers");
    let refuse = |field: &str| Err(Refusal::invalid(ty, name, field, "Required value"));
    if containers.is_empty() {
        return refuse("spec.containers");
    }
    for (index, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if text(container, &format!("/{field}")).is_empty() {
                return refuse(&format!("spec.containers[{index}].{field}"));
            }
        }
    }
    Ok(())
}

/// Admission resolves a Pod's priority class; without one, the global default or 0.
fn set_priority(
    catalog: &Catalog,
    store: &Store,
    ty: &ResourceType,
    name: &str,
    pod: &mut Value,
) -> Result<(), Refusal> {
    let Some(classes) = catalog.find("scheduling.k8s.io", "v1", "priorityclasses") else {
        return Ok(());
    };
    let wanted = text(pod, "/spec/priorityClassName").to_owned();
    let class = if wanted.is_empty() {
        let all = store.list(classes, None).0;
        let mut values = all.iter().filter_map(|class| class.value().ok());
        values.find(|class| class.get("globalDefault") == Some(&json!(true)))
    } else {
        let Ok(class) = store.get(classes, &Key::new("", &wanted)) else {
            let why = format!("no PriorityClass with name {wanted} was found");
            let name = if name.is_empty() { "Unknown" } else { name };
            return Err(Refusal::forbidden(ty, name, why));
        };
        Some(class.value()?)
    };
    let spec = section(pod, "spec");
    let class = class.unwrap_or_else(|| json!({ "value": 0 }));
    spec.insert("priority".to_owned(), class.get("value").cloned().unwrap_or_else(|| json!(0)));
    let policy = Some(text(&class, "/preemptionPolicy")).filter(|policy| !policy.is_empty());
    default(spec, "preemptionPolicy", policy.unwrap_or("PreemptLowerPriority"));
    let class_name = text(&class, "/metadata/name");
    if !class_name.is_empty() {
        spec.insert("priorityClassName".to_owned(), json!(class_name));
    }
    Ok(())
}

/// The defaults that clients look at.
fn set_defaults(pod: &mut Value) {
    let spec = section(pod, "spec");
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "securityContext", json!({}));
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "enableServiceLinks", true);
    set_tolerations(spec);
    for field in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(field) else { continue };
        for container in containers {
            let latest = !text(container, "/image").contains(':');
            let container = as_map(container);
            default(container, "resources", json!({}));
            default(container, "terminationMessagePath", "/dev/termination-log");
            default(container, "terminationMessagePolicy", "File");
            default(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
            set_container_defaults(container);
        }
    }
}

/// What is not requested is what is the limit; ports are TCP.
fn set_container_defaults(container: &mut Map<String, Value>) {
    if let Some(Value::Array(ports)) = container.get_mut("ports") {
        for port in ports {
            default(as_map(port), "protocol", "TCP");
        }
    }
    let resources = as_map(container.entry("resources").or_insert(Value::Null));
    if let Some(Value::Object(limits)) = resources.get("limits").cloned() {
        let requests = as_map(resources.entry("requests").or_insert(Value::Null));
        for (resource, limit) in limits {
            requests.entry(resource).or_insert(limit);
        }
    }
}

/// Every Pod stays five minutes on a node that is lost, unless it says otherwise.
fn set_tolerations(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let effect = text(toleration, "/effect");
            let for_key = [key, ""].contains(&text(toleration, "/key"));
            for_key && ["NoExecute", ""].contains(&effect)
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// The spec without what an update may change.
fn fixed_part(pod: &Value, gated: bool) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    let map = as_map(&mut spec);
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        map.remove(field);
    }
    if gated {
        // While a Pod is gated, its node selection may still be narrowed; the model checks only
        // that nothing else changes.
        map.remove("nodeSelector");
        if let Some(Value::Object(affinity)) = map.get_mut("affinity") {
            affinity.remove("nodeAffinity");
        }
        if map.get("affinity").is_some_and(|affinity| affinity == &json!({})) {
            map.remove("affinity");
        }
    }
    for field in ["containers", "initContainers"] {
        if let Some(Value::Array(containers)) = map.get_mut(field) {
            for container in containers {
                as_map(container).remove("image");
            }
        }
    }
    spec
}

fn qos_class(pod: &Value) -> &'static str {
    let all = || list(pod, "/spec/containers").iter().chain(list(pod, "/spec/initContainers"));
    let amount = |container: &Value, part: &str, resource: &str| {
        container.pointer(&format!("/resources/{part}/{resource}")).cloned()
    };
    let mut guaranteed = true;
    let mut best_effort = true;
    for container in all() {
        for resource in ["cpu", "memory"] {
            let request = amount(container, "requests", resource);
            let limit = amount(container, "limits", resource);
            best_effort &= request.is_none() && limit.is_none();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (best_effort, guaranteed) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}
