//! ResourceSlices.

use std::sync::Arc;

use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1 as k8s;
use model::{
    Attribute, CapacityPolicy, CapacityValues, CounterSet, CounterUse, Device, DeviceCapacity,
    DevicePlace, DeviceTaint, DeviceType, NodeName, Quantity, ResourceSlice,
};

use super::{effect, quantity, selected_nodes, text, texts};

/// `share` gives the one copy of what devices that are alike have in common.
pub(crate) fn resource_slice(
    wire: &k8s::ResourceSlice,
    mut share: impl FnMut(DeviceType) -> Arc<DeviceType>,
) -> ResourceSlice {
    let spec = &wire.spec;
    let mut device = |it: &k8s::Device| device(it, share(device_type(&spec.driver, it)));
    let per_device = spec.per_device_node_selection == Some(true);
    let place = place(spec.node_name.as_ref(), spec.node_selector.as_ref(), spec.all_nodes);
    ResourceSlice {
        name: wire.metadata.name.as_deref().unwrap_or_default().into(),
        driver: text(&spec.driver),
        pool: text(&spec.pool.name),
        generation: spec.pool.generation,
        slice_count: spec.pool.resource_slice_count,
        place: place.filter(|_| !per_device).unwrap_or(DevicePlace::PerDevice),
        devices: spec.devices.iter().flatten().map(&mut device).collect(),
        shared_counters: spec.shared_counters.iter().flatten().map(counter_set).collect(),
    }
}

fn place(
    node: Option<&String>,
    selector: Option<&NodeSelector>,
    all: Option<bool>,
) -> Option<DevicePlace> {
    if let Some(node) = node.filter(|it| !it.is_empty()) {
        return Some(DevicePlace::Node(NodeName::new(node)));
    }
    if let Some(selector) = selector {
        return Some(DevicePlace::Nodes(selected_nodes(selector)));
    }
    (all == Some(true)).then_some(DevicePlace::AllNodes)
}

fn device_type(driver: &str, wire: &k8s::Device) -> DeviceType {
    let attributes = wire.attributes.iter().flatten();
    let attributes = attributes.filter_map(|(name, it)| Some((text(name), attribute(it)?)));
    let capacity = wire.capacity.iter().flatten();
    DeviceType {
        driver: text(driver),
        attributes: attributes.collect(),
        capacity: capacity.map(|(name, it)| (text(name), device_capacity(it))).collect(),
        allow_multiple_allocations: wire.allow_multiple_allocations == Some(true),
    }
}

/// `None`: a list, which no API server serves unless a feature that is off by default is switched on.
fn attribute(wire: &k8s::DeviceAttribute) -> Option<Attribute> {
    let of_bool = wire.bool.map(Attribute::Bool);
    let of_int = wire.int.map(Attribute::Int);
    let of_text = wire.string.as_deref().map(|it| Attribute::Text(it.into()));
    let of_version = wire.version.as_deref().map(|it| Attribute::Version(it.into()));
    of_bool.or(of_int).or(of_text).or(of_version)
}

fn device_capacity(wire: &k8s::DeviceCapacity) -> DeviceCapacity {
    DeviceCapacity {
        value: quantity(&wire.value),
        text: text(&wire.value.0),
        policy: wire.request_policy.as_ref().map(policy),
    }
}

fn policy(wire: &k8s::CapacityRequestPolicy) -> CapacityPolicy {
    let listed = wire.valid_values.as_ref().filter(|it| !it.is_empty());
    let values = match (listed, &wire.valid_range) {
        (Some(values), _) => CapacityValues::Listed(values.iter().map(quantity).collect()),
        (None, Some(range)) => CapacityValues::Range {
            min: Some(quantity(&range.min)),
            max: range.max.as_ref().map(quantity),
            step: range.step.as_ref().map(quantity),
        },
        (None, None) => CapacityValues::Any,
    };
    CapacityPolicy { default: wire.default.as_ref().map(quantity), values }
}

fn counters(
    wire: &std::collections::BTreeMap<String, k8s::Counter>,
) -> std::collections::BTreeMap<Arc<str>, Quantity> {
    wire.iter().map(|(name, it)| (text(name), quantity(&it.value))).collect()
}

fn counter_set(wire: &k8s::CounterSet) -> CounterSet {
    CounterSet { name: text(&wire.name), counters: counters(&wire.counters) }
}

fn device(wire: &k8s::Device, device_type: Arc<DeviceType>) -> Device {
    let consumes = wire.consumes_counters.iter().flatten();
    let taints = wire.taints.iter().flatten();
    Device {
        name: text(&wire.name),
        device_type,
        consumes_counters: consumes
            .map(|it| CounterUse {
                counter_set: text(&it.counter_set),
                counters: counters(&it.counters),
            })
            .collect(),
        place: place(wire.node_name.as_ref(), wire.node_selector.as_ref(), wire.all_nodes),
        taints: taints
            .map(|it| DeviceTaint {
                key: text(&it.key),
                value: it.value.as_deref().unwrap_or_default().into(),
                effect: effect(&it.effect),
            })
            .collect(),
        binds_to_node: wire.binds_to_node == Some(true),
        binding_conditions: texts(wire.binding_conditions.as_ref()),
        binding_failure_conditions: texts(wire.binding_failure_conditions.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_slice_says_where_its_devices_are_and_what_they_have() {
        let wire = serde_json::from_value(json!({
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.example.com", "perDeviceNodeSelection": true,
                "pool": {"name": "p", "generation": 3, "resourceSliceCount": 2},
                "devices": [{
                    "name": "d0", "nodeName": "n1", "bindsToNode": true,
                    "allowMultipleAllocations": true,
                    "attributes": {"model": {"string": "a100"}, "x.y/cores": {"int": 4}},
                    "capacity": {"memory": {
                        "value": "40Gi",
                        "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
                    }},
                    "taints": [{"key": "k", "effect": "NoSchedule"}],
                    "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}],
                }],
            },
        }))
        .unwrap();
        let slice = resource_slice(&wire, Arc::new);
        assert_eq!(
            (slice.place, slice.generation, slice.slice_count),
            (DevicePlace::PerDevice, 3, 2)
        );
        let device = &slice.devices[0];
        assert_eq!(device.place, Some(DevicePlace::Node("n1".into())));
        let of_type = &device.device_type;
        assert_eq!(of_type.attributes["model"], Attribute::Text("a100".into()));
        assert_eq!(of_type.capacity["memory"].value, Quantity::from_whole(40 << 30));
        assert!(of_type.allow_multiple_allocations && device.taints[0].repels());
    }
}
