//! Our allocations as they would be written.

use std::sync::Arc;

use model::{
    AllocatedDevice, Allocation, ConfigSource, DeviceConfig, DeviceTaintEffect, DeviceToleration,
    RawNodeTerm, RawRequirement,
};
use serde_json::{Map, Value, json};

pub fn written(allocation: &Allocation) -> Value {
    let terms = |terms: &[RawNodeTerm]| terms.iter().map(term).collect::<Value>();
    let mut written = json!({"devices": {
        "results": allocation.devices.iter().map(device).collect::<Value>(),
        "config": allocation.configs.iter().map(config).collect::<Value>(),
    }});
    if let Some(nodes) = &allocation.nodes {
        written["nodeSelector"] = json!({"nodeSelectorTerms": terms(&nodes.terms)});
    }
    written
}

fn device(device: &AllocatedDevice) -> Value {
    let mut written = json!({
        "request": &*device.request,
        "driver": &*device.id.driver,
        "pool": &*device.id.pool,
        "device": &*device.id.device,
    });
    if device.admin_access {
        written["adminAccess"] = json!(true);
    }
    if !device.tolerations.is_empty() {
        written["tolerations"] = device.tolerations.iter().map(toleration).collect();
    }
    put_texts(&mut written, "bindingConditions", &device.binding_conditions);
    put_texts(&mut written, "bindingFailureConditions", &device.binding_failure_conditions);
    if let Some(id) = &device.share_id {
        written["shareID"] = json!(&**id);
    }
    if !device.consumed_capacity.is_empty() {
        let consumed = device.consumed_capacity.iter();
        let consumed = consumed.map(|(name, it)| (name.to_string(), json!(it.to_string())));
        written["consumedCapacity"] = Value::Object(consumed.collect::<Map<_, _>>());
    }
    written
}

fn put_texts(written: &mut Value, field: &str, texts: &[Arc<str>]) {
    if !texts.is_empty() {
        written[field] = texts.iter().map(|it| json!(&**it)).collect();
    }
}

fn toleration(it: &DeviceToleration) -> Value {
    let mut written = json!({"operator": if it.exists { "Exists" } else { "Equal" }});
    for (field, text) in [("key", &it.key), ("value", &it.value)] {
        if !text.is_empty() {
            written[field] = json!(&**text);
        }
    }
    if let Some(effect) = it.effect {
        written["effect"] = json!(match effect {
            DeviceTaintEffect::NoSchedule => "NoSchedule",
            DeviceTaintEffect::NoExecute => "NoExecute",
            DeviceTaintEffect::Other => "None",
        });
    }
    if let Some(seconds) = it.toleration_seconds {
        written["tolerationSeconds"] = json!(seconds);
    }
    written
}

fn config(config: &DeviceConfig) -> Value {
    let source = match config.source {
        ConfigSource::FromClass => "FromClass",
        ConfigSource::FromClaim => "FromClaim",
    };
    let opaque: Value = serde_json::from_str(&config.opaque).expect("it was JSON");
    let mut written = json!({"source": source, "opaque": opaque});
    put_texts(&mut written, "requests", &config.requests);
    written
}

fn term(term: &RawNodeTerm) -> Value {
    let mut written = json!({});
    for (field, all) in [("matchExpressions", &term.expressions), ("matchFields", &term.fields)] {
        if !all.is_empty() {
            written[field] = all.iter().map(requirement).collect();
        }
    }
    written
}

fn requirement(it: &RawRequirement) -> Value {
    let mut written = json!({"key": it.key, "operator": it.operator});
    if !it.values.is_empty() {
        written["values"] = json!(it.values);
    }
    written
}
