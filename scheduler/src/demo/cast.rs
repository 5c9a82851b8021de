//! The nodes, Pods and corridor of the demo, as API objects.

use crds::{Corridor, CorridorSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

pub const NAMESPACE: &str = "team-a";
pub const CORRIDOR: &str = "spine";
pub const FLOOR_GBPS: u32 = 100;
pub const NODES: usize = 5;
pub const URGENT: &str = "urgent";
const NODE_CPUS: u32 = 8;

pub fn node(number: usize) -> Node {
    let amounts = json!({"cpu": NODE_CPUS.to_string(), "memory": "32Gi", "pods": "110"});
    parsed(json!({
        "metadata": {"name": format!("node-{number}"), "labels": {"kubernetes.io/os": "linux"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "DemoNode"}],
        },
    }))
}

/// Four lanes of light in the C band, a floor of 100 Gbps.
pub fn corridor() -> Corridor {
    let spec = CorridorSpec::new(4, [1550, 1551, 1552, 1553], FLOOR_GBPS);
    let metadata = ObjectMeta {
        namespace: Some(NAMESPACE.to_owned()),
        name: Some(CORRIDOR.to_owned()),
        ..ObjectMeta::default()
    };
    Corridor { metadata, ..Corridor::new(CORRIDOR, spec) }
}

/// Admission gives a Pod the priority of its class.
pub fn urgent_class() -> PriorityClass {
    parsed(json!({
        "metadata": {"name": URGENT},
        "value": 1000,
        "description": "Goes before everybody else in a line.",
    }))
}

/// A Pod of one CPU; with `gbps` it reserves that much of the corridor.
pub fn pod(name: &str, gbps: Option<u32>, class: Option<&str>) -> Pod {
    let mut annotations = json!({});
    if let Some(gbps) = gbps {
        annotations[crds::annotations::CORRIDOR_REF] = json!(format!("{NAMESPACE}/{CORRIDOR}"));
        annotations[crds::annotations::CORRIDOR_GBPS] = json!(gbps.to_string());
    }
    parsed(json!({
        "metadata": {"namespace": NAMESPACE, "name": name, "annotations": annotations},
        "spec": {
            "schedulerName": crds::SCHEDULER_NAME,
            "priorityClassName": class,
            "containers": [{
                "name": "main",
                "image": "app:1",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            }],
        },
    }))
}

fn parsed<T: serde::de::DeserializeOwned + Default>(object: Value) -> T {
    serde_json::from_value(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_what_its_kind_expects() {
        assert_eq!(node(1).metadata.name.as_deref(), Some("node-1"));
        let pod = pod("p", Some(30), Some(URGENT));
        let annotations = pod.metadata.annotations.unwrap();
        assert_eq!(annotations["corridoros.io/corridorRef"], "team-a/spine");
        assert_eq!(annotations["corridoros.io/corridorGbps"], "30");
        assert_eq!(pod.spec.unwrap().priority_class_name.as_deref(), Some("urgent"));
        assert_eq!(urgent_class().value, Some(1000));
        assert_eq!(corridor().spec.min_gbps, 100);
    }
}
