//! Classes that Pods name, and what the API server takes from them.

use serde_json::{Value, json};

/// Classes with the priorities 0 to this, exclusive.
pub(crate) const PRIORITIES: usize = 4;
/// Of a Pod that is important, but takes nothing away from others.
pub(crate) const NEVER_PREEMPTS: &str = "never-preempts";
/// They add to what a Pod needs; the second also says where it may run.
pub(crate) const RUNTIME_CLASSES: [&str; 3] = [HEAVY, HEAVY, HEAVY_ON_SSD];
const HEAVY: &str = "heavy";
const HEAVY_ON_SSD: &str = "heavy-on-ssd";

pub(crate) fn priority_class(priority: usize) -> String {
    format!("priority-{priority}")
}

/// Every PriorityClass that a Pod names.
pub fn priority_classes() -> Vec<Value> {
    let class = |priority: usize| json!({"metadata": {"name": priority_class(priority)}, "value": priority});
    let mut classes: Vec<Value> = (0..PRIORITIES).map(class).collect();
    let metadata = json!({"name": NEVER_PREEMPTS});
    let important = PRIORITIES - 1;
    classes.push(json!({"metadata": metadata, "value": important, "preemptionPolicy": "Never"}));
    classes
}

/// Every RuntimeClass that a Pod names.
pub fn runtime_classes() -> Vec<Value> {
    let tolerations = json!([{"key": "t", "operator": "Exists"}]);
    let on_ssd = json!({"nodeSelector": {"disk": "ssd"}, "tolerations": tolerations});
    let class = |(name, scheduling): (&str, Value)| {
        let overhead = json!({"podFixed": {"cpu": "250m", "memory": "120Mi"}});
        json!({
            "metadata": {"name": name}, "handler": "heavy", "overhead": overhead,
            "scheduling": scheduling,
        })
    };
    [(HEAVY, Value::Null), (HEAVY_ON_SSD, on_ssd)].map(class).into()
}

/// Writes into a Pod what the API server takes from its classes when it stores the Pod.
pub fn resolve_classes(pod: &mut Value) {
    let spec = &mut pod["spec"];
    let class = named(priority_classes(), &spec["priorityClassName"]);
    spec["priority"] = json!(class["value"].as_u64().unwrap_or_default());
    if let Some(policy) = class.get("preemptionPolicy") {
        spec["preemptionPolicy"] = policy.clone();
    }
    let class = named(runtime_classes(), &spec["runtimeClassName"]);
    if let Some(overhead) = class.pointer("/overhead/podFixed") {
        spec["overhead"] = overhead.clone();
    }
    for (key, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        spec["nodeSelector"][key] = value.clone();
    }
    if let Some(more) = class["scheduling"]["tolerations"].as_array() {
        let own = spec["tolerations"].as_array().cloned().unwrap_or_default();
        spec["tolerations"] = json!([own.as_slice(), more.as_slice()].concat());
    }
}

fn named(classes: Vec<Value>, name: &Value) -> Value {
    classes.into_iter().find(|class| class["metadata"]["name"] == *name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_pod_has_what_its_classes_say() {
        let mut pod = json!({"spec": {
            "priorityClassName": NEVER_PREEMPTS, "runtimeClassName": HEAVY_ON_SSD,
            "nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}],
        }});
        resolve_classes(&mut pod);
        let spec = &pod["spec"];
        assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(3), &json!("Never")));
        assert_eq!(spec["overhead"]["cpu"], "250m");
        assert_eq!(spec["nodeSelector"], json!({"zone": "a", "disk": "ssd"}));
        assert_eq!(spec["tolerations"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_pod_without_classes_has_the_default_priority_and_nothing_else() {
        let mut pod = json!({"spec": {}});
        resolve_classes(&mut pod);
        assert_eq!(pod["spec"]["priority"], 0);
        assert!(pod["spec"]["overhead"].is_null() && pod["spec"]["tolerations"].is_null());
    }
}
