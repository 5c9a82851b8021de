//! ResourceSlices.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Attribute, CapacityPolicy, CapacityValues, CounterSet, CounterUse, Device, DeviceCapacity,
    DevicePlace, DeviceTaint, DeviceTaintEffect, DeviceType, NodeName, Quantity, ResourceSlice,
};
use serde_json::Value;

use super::{items, quantity, selected_nodes, text, word, words};

pub(super) fn slice(slice: &Value) -> ResourceSlice {
    let (spec, pool) = (&slice["spec"], &slice["spec"]["pool"]);
    let driver = word(&spec["driver"]);
    let sets = items(&spec["sharedCounters"])
        .iter()
        .map(|it| CounterSet { name: word(&it["name"]), counters: counters(&it["counters"]) });
    ResourceSlice {
        name: word(&slice["metadata"]["name"]),
        pool: word(&pool["name"]),
        generation: pool["generation"].as_i64().expect("a generation"),
        slice_count: pool["resourceSliceCount"].as_i64().expect("a count"),
        place: place(spec).unwrap_or(DevicePlace::PerDevice),
        devices: items(&spec["devices"]).iter().map(|it| device(&driver, it)).collect(),
        shared_counters: sets.collect(),
        driver,
    }
}

fn place(spec: &Value) -> Option<DevicePlace> {
    if let Some(node) = spec["nodeName"].as_str() {
        return Some(DevicePlace::Node(NodeName::new(node)));
    }
    if spec["nodeSelector"].is_object() {
        return Some(DevicePlace::Nodes(selected_nodes(&spec["nodeSelector"])));
    }
    (spec["allNodes"] == true).then_some(DevicePlace::AllNodes)
}

fn device(driver: &Arc<str>, device: &Value) -> Device {
    let uses = items(&device["consumesCounters"]).iter().map(|it| CounterUse {
        counter_set: word(&it["counterSet"]),
        counters: counters(&it["counters"]),
    });
    let taints = items(&device["taints"]).iter().map(|it| DeviceTaint {
        key: word(&it["key"]),
        value: word(&it["value"]),
        effect: effect(text(&it["effect"])),
    });
    Device {
        name: word(&device["name"]),
        device_type: device_type(driver, device).into(),
        consumes_counters: uses.collect(),
        place: place(device),
        taints: taints.collect(),
        binds_to_node: device["bindsToNode"] == true,
        binding_conditions: words(&device["bindingConditions"]),
        binding_failure_conditions: words(&device["bindingFailureConditions"]),
    }
}

fn device_type(driver: &Arc<str>, device: &Value) -> DeviceType {
    let attributes = device["attributes"].as_object().into_iter().flatten();
    let capacity = device["capacity"].as_object().into_iter().flatten();
    DeviceType {
        driver: driver.clone(),
        attributes: attributes.map(|(name, it)| (name.as_str().into(), attribute(it))).collect(),
        capacity: capacity.map(|(name, it)| (name.as_str().into(), device_capacity(it))).collect(),
        allow_multiple_allocations: device["allowMultipleAllocations"] == true,
    }
}

fn attribute(it: &Value) -> Attribute {
    let of_bool = it["bool"].as_bool().map(Attribute::Bool);
    let of_int = it["int"].as_i64().map(Attribute::Int);
    let of_text = it["string"].as_str().map(|it| Attribute::Text(it.into()));
    let of_version = it["version"].as_str().map(|it| Attribute::Version(it.into()));
    of_bool.or(of_int).or(of_text).or(of_version).expect("an attribute has a value")
}

fn device_capacity(it: &Value) -> DeviceCapacity {
    let policy = &it["requestPolicy"];
    DeviceCapacity {
        value: quantity(&it["value"]),
        text: word(&it["value"]),
        policy: policy.is_object().then(|| self::policy(policy)),
    }
}

fn policy(policy: &Value) -> CapacityPolicy {
    let optional = |it: &Value| it.is_string().then(|| quantity(it));
    let range = &policy["validRange"];
    let values = match items(&policy["validValues"]) {
        [] if range.is_object() => CapacityValues::Range {
            min: optional(&range["min"]),
            max: optional(&range["max"]),
            step: optional(&range["step"]),
        },
        [] => CapacityValues::Any,
        listed => CapacityValues::Listed(listed.iter().map(quantity).collect()),
    };
    CapacityPolicy { default: optional(&policy["default"]), values }
}

fn counters(counters: &Value) -> BTreeMap<Arc<str>, Quantity> {
    let all = counters.as_object().into_iter().flatten();
    all.map(|(name, it)| (name.as_str().into(), quantity(&it["value"]))).collect()
}

pub(super) fn effect(effect: &str) -> DeviceTaintEffect {
    match effect {
        "NoSchedule" => DeviceTaintEffect::NoSchedule,
        "NoExecute" => DeviceTaintEffect::NoExecute,
        _ => DeviceTaintEffect::Other,
    }
}
