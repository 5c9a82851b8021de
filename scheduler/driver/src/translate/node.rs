use model::{Effect, Node, NodeName, Quantity, Taint};

use super::{labels, requests};
use crate::wire::{WireNode, WireTaint};

pub(crate) fn node(wire: WireNode) -> Node {
    let allocatable = &wire.status.allocatable;
    let pods_max = allocatable.get("pods").and_then(|text| text.parse().ok()).map(Quantity::value);
    Node {
        name: NodeName::new(wire.metadata.name.as_deref().unwrap_or_default()),
        labels: labels(wire.metadata.labels.unwrap_or_default()),
        taints: wire.spec.taints.iter().filter_map(taint).collect(),
        unschedulable: wire.spec.unschedulable,
        allocatable: requests::resources(allocatable),
        pods_max: pods_max.unwrap_or(0),
    }
}

fn taint(wire: &WireTaint) -> Option<Taint> {
    let effect = effect(&wire.effect)?;
    Some(Taint { key: wire.key.as_str().into(), value: wire.value.as_str().into(), effect })
}

/// `None` for an effect that does not exist, which the API server would not accept.
pub(super) fn effect(text: &str) -> Option<Effect> {
    match text {
        "NoSchedule" => Some(Effect::NoSchedule),
        "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
        "NoExecute" => Some(Effect::NoExecute),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_scheduling_needs() {
        let wire = json!({
            "metadata": {"name": "n1", "labels": {"zone": "a"}, "managedFields": [{"x": 1}]},
            "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoExecute"}]},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "images": []},
        });
        let node = node(serde_json::from_value(wire).unwrap());
        assert_eq!(node.name.as_str(), "n1");
        assert!(node.unschedulable && node.labels.contains_key("zone"));
        assert_eq!((node.allocatable.cpu_milli, node.pods_max), (4000, 110));
        assert_eq!(node.taints[0].effect, Effect::NoExecute);
    }

    #[test]
    fn an_unreadable_allocatable_of_pods_takes_none() {
        let wire = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "x"}}});
        assert_eq!(node(serde_json::from_value(wire).unwrap()).pods_max, 0);
    }
}
