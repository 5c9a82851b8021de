//! `status.allocation` of a ResourceClaim, read and written.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::{
    AllocatedDevice, Allocation, ConfigSource, DeviceConfig, DeviceId, DeviceTaintEffect,
    DeviceToleration, RawRequirement, SelectedNodes,
};

use super::{opaque, quantities, selected_nodes, text, texts, tolerations};

pub(super) fn allocation(wire: &k8s::AllocationResult) -> Allocation {
    let devices = wire.devices.as_ref();
    let results = devices.and_then(|it| it.results.as_ref()).into_iter().flatten();
    let configs = devices.and_then(|it| it.config.as_ref()).into_iter().flatten();
    Allocation {
        devices: results.map(device).collect(),
        configs: configs.map(config).collect(),
        nodes: wire.node_selector.as_ref().map(selected_nodes),
        allocated_at_unix_s: wire.allocation_timestamp.as_ref().map(|it| it.0.as_second()),
    }
}

fn device(wire: &k8s::DeviceRequestAllocationResult) -> AllocatedDevice {
    AllocatedDevice {
        request: text(&wire.request),
        id: DeviceId {
            driver: text(&wire.driver),
            pool: text(&wire.pool),
            device: text(&wire.device),
        },
        admin_access: wire.admin_access == Some(true),
        tolerations: tolerations(wire.tolerations.as_ref()),
        binding_conditions: texts(wire.binding_conditions.as_ref()),
        binding_failure_conditions: texts(wire.binding_failure_conditions.as_ref()),
        share_id: wire.share_id.as_deref().map(text),
        consumed_capacity: quantities(wire.consumed_capacity.as_ref()),
    }
}

fn config(wire: &k8s::DeviceAllocationConfiguration) -> DeviceConfig {
    DeviceConfig {
        source: if wire.source == FROM_CLASS {
            ConfigSource::FromClass
        } else {
            ConfigSource::FromClaim
        },
        requests: texts(wire.requests.as_ref()),
        opaque: opaque(wire.opaque.as_ref()),
    }
}

const FROM_CLASS: &str = "FromClass";
const FROM_CLAIM: &str = "FromClaim";

/// As it is written into the status of a claim.
pub(crate) fn allocation_to_write(allocation: &Allocation) -> k8s::AllocationResult {
    let Allocation { devices, configs, nodes, allocated_at_unix_s } = allocation;
    let config = configs.iter().map(config_to_write).collect();
    let at = allocated_at_unix_s.and_then(|at| Timestamp::from_second(at).ok());
    k8s::AllocationResult {
        allocation_timestamp: at.map(Time),
        devices: Some(k8s::DeviceAllocationResult {
            config: Some(config).filter(|it: &Vec<_>| !it.is_empty()),
            results: Some(devices.iter().map(device_to_write).collect()),
        }),
        node_selector: nodes.as_deref().map(nodes_to_write),
    }
}

fn owned(texts: &[Arc<str>]) -> Option<Vec<String>> {
    (!texts.is_empty()).then(|| texts.iter().map(ToString::to_string).collect())
}

fn device_to_write(device: &AllocatedDevice) -> k8s::DeviceRequestAllocationResult {
    let consumed = device.consumed_capacity.iter();
    let consumed = consumed.map(|(name, it)| (name.to_string(), WireQuantity(it.to_string())));
    let tolerations: Vec<_> = device.tolerations.iter().map(toleration_to_write).collect();
    k8s::DeviceRequestAllocationResult {
        request: device.request.to_string(),
        driver: device.id.driver.to_string(),
        pool: device.id.pool.to_string(),
        device: device.id.device.to_string(),
        admin_access: device.admin_access.then_some(true),
        tolerations: Some(tolerations).filter(|it| !it.is_empty()),
        binding_conditions: owned(&device.binding_conditions),
        binding_failure_conditions: owned(&device.binding_failure_conditions),
        share_id: device.share_id.as_deref().map(str::to_owned),
        consumed_capacity: (!device.consumed_capacity.is_empty()).then(|| consumed.collect()),
    }
}

fn toleration_to_write(it: &DeviceToleration) -> k8s::DeviceToleration {
    let filled = |text: &Arc<str>| (!text.is_empty()).then(|| text.to_string());
    let effect = it.effect.map(|effect| match effect {
        DeviceTaintEffect::NoSchedule => "NoSchedule",
        DeviceTaintEffect::NoExecute => "NoExecute",
        DeviceTaintEffect::Other => "None",
    });
    k8s::DeviceToleration {
        key: filled(&it.key),
        operator: Some(if it.exists { "Exists" } else { "Equal" }.to_owned()),
        value: filled(&it.value),
        effect: effect.map(str::to_owned),
        toleration_seconds: it.toleration_seconds,
    }
}

fn config_to_write(config: &DeviceConfig) -> k8s::DeviceAllocationConfiguration {
    let source = match config.source {
        ConfigSource::FromClass => FROM_CLASS,
        ConfigSource::FromClaim => FROM_CLAIM,
    };
    k8s::DeviceAllocationConfiguration {
        opaque: serde_json::from_str(&config.opaque).ok(),
        requests: owned(&config.requests),
        source: source.to_owned(),
    }
}

fn nodes_to_write(nodes: &SelectedNodes) -> NodeSelector {
    let requirements = |all: &[RawRequirement]| {
        let requirement = |it: &RawRequirement| NodeSelectorRequirement {
            key: it.key.clone(),
            operator: it.operator.clone(),
            values: Some(it.values.clone()).filter(|it| !it.is_empty()),
        };
        let all: Vec<_> = all.iter().map(requirement).collect();
        Some(all).filter(|it| !it.is_empty())
    };
    let terms = nodes.terms.iter().map(|term| NodeSelectorTerm {
        match_expressions: requirements(&term.expressions),
        match_fields: requirements(&term.fields),
    });
    NodeSelector { node_selector_terms: terms.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let whole: Value = json!({
            "allocationTimestamp": "2026-11-19T01:00:00Z",
            "devices": {
                "results": [{
                    "request": "r/a", "driver": "d", "pool": "p", "device": "x",
                    "adminAccess": true, "shareID": "u",
                    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
                    "bindingConditions": ["ok"], "bindingFailureConditions": ["bad"],
                    "consumedCapacity": {"memory": "10Gi"},
                }],
                "config": [{
                    "source": "FromClass", "requests": ["r"],
                    "opaque": {"driver": "d", "parameters": {"a": [1, 2]}},
                }],
            },
            "nodeSelector": {"nodeSelectorTerms": [{
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
            }]},
        });
        let wire: k8s::AllocationResult = serde_json::from_value(whole.clone()).unwrap();
        let written = serde_json::to_value(allocation_to_write(&allocation(&wire))).unwrap();
        assert_eq!(written, whole);
    }
}
