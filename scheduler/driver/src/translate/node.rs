use std::sync::Arc;

use model::{ClusterNode, Effect, Node, NodeImage, NodeName, Quantity, Taint, resources};

use super::labels;
use super::requests::resource_list;
use crate::wire::{WireNode, WireNodeImage, WireTaint};

/// What the Node has of a resource and cannot be read, it has not.
const UNREADABLE: Quantity = Quantity::from_whole(0);

pub(crate) fn node(wire: &WireNode) -> ClusterNode {
    let WireNode { metadata, spec, status } = wire;
    let allocatable = resource_list(&status.allocatable, UNREADABLE);
    let features = status.declared_features.iter().map(|name| name.as_str().into());
    ClusterNode {
        node: Node {
            name: NodeName::new(metadata.name.as_deref().unwrap_or_default()),
            labels: metadata.labels.as_ref().map(labels).unwrap_or_default(),
            taints: spec.taints.iter().filter_map(taint).collect(),
            unschedulable: spec.unschedulable,
            pods_max: allocatable.get("pods").copied().map_or(0, Quantity::value),
            allocatable: resources(&allocatable),
        },
        images: status.images.iter().map(image).map(Arc::new).collect(),
        declared_features: features.collect(),
    }
}

fn image(wire: &WireNodeImage) -> NodeImage {
    NodeImage {
        names: wire.names.iter().map(|name| name.as_str().into()).collect(),
        size_bytes: wire.size_bytes.clamp(0, IMAGE_BYTES_MAX),
    }
}

/// 256 TiB, like everything that is summed: no image is larger, and no sum of images overflows.
const IMAGE_BYTES_MAX: i64 = Quantity::VALUE_MAX;

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
    use serde_json::{Value, json};

    fn read(wire: Value) -> ClusterNode {
        node(&serde_json::from_value(wire).unwrap())
    }

    #[test]
    fn reads_what_scheduling_needs() {
        let ClusterNode { node, images, declared_features } = read(json!({
            "metadata": {"name": "n1", "labels": {"zone": "a"}, "managedFields": [{"x": 1}]},
            "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoExecute"}]},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/g": "2"},
                "images": [
                    {"names": ["app:v1", "app@sha256:aa"], "sizeBytes": 1000},
                    {"names": null, "sizeBytes": -1},
                ],
                "declaredFeatures": ["F"],
            },
        }));
        assert_eq!(node.name.as_str(), "n1");
        assert!(node.unschedulable && node.labels.contains_key("zone"));
        assert_eq!((node.allocatable.cpu_milli, node.pods_max), (4000, 110));
        assert_eq!(node.allocatable.scalar("example.com/g"), 2);
        assert_eq!(node.taints[0].effect, Effect::NoExecute);
        assert_eq!((images[0].names.len(), images[0].size_bytes), (2, 1000));
        assert_eq!(*images[1], NodeImage { names: Vec::new(), size_bytes: 0 });
        assert!(declared_features.contains("F"));
    }

    #[test]
    fn what_cannot_be_read_the_node_does_not_have() {
        let allocatable = json!({"pods": "x", "cpu": "much", "memory": "-1"});
        let node = read(json!({"metadata": {}, "status": {"allocatable": allocatable}})).node;
        assert_eq!((node.pods_max, node.allocatable), (0, model::Resources::default()));
    }
}
