//! Objects of `resource.k8s.io/v1`: devices, their classes, and what claims ask for and have.

mod allocation;
mod claim;
mod slice;

pub(crate) use allocation::allocation_to_write;
pub(crate) use claim::{device_class, resource_claim};
pub(crate) use slice::resource_slice;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};
use k8s_openapi::api::resource::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use model::{
    DeviceTaintEffect, DeviceToleration, Quantity, RawNodeTerm, RawRequirement, SelectedNodes,
};

fn text(text: &str) -> Arc<str> {
    text.into()
}

fn texts(texts: Option<&Vec<String>>) -> Vec<Arc<str>> {
    texts.into_iter().flatten().map(|it| text(it)).collect()
}

/// The API server accepts nothing that cannot be read.
fn quantity(wire: &WireQuantity) -> Quantity {
    wire.0.parse().unwrap_or_default()
}

fn quantities(wire: Option<&BTreeMap<String, WireQuantity>>) -> BTreeMap<Arc<str>, Quantity> {
    wire.into_iter().flatten().map(|(name, amount)| (text(name), quantity(amount))).collect()
}

fn selected_nodes(wire: &NodeSelector) -> Arc<SelectedNodes> {
    let requirements = |wire: &Option<Vec<NodeSelectorRequirement>>| {
        let requirement = |it: &NodeSelectorRequirement| RawRequirement {
            key: it.key.clone(),
            operator: it.operator.clone(),
            values: it.values.clone().unwrap_or_default(),
        };
        wire.iter().flatten().map(requirement).collect()
    };
    let terms = wire.node_selector_terms.iter().map(|term| RawNodeTerm {
        expressions: requirements(&term.match_expressions),
        fields: requirements(&term.match_fields),
    });
    Arc::new(SelectedNodes::parse(terms.collect()))
}

fn effect(wire: &str) -> DeviceTaintEffect {
    match wire {
        "NoSchedule" => DeviceTaintEffect::NoSchedule,
        "NoExecute" => DeviceTaintEffect::NoExecute,
        _ => DeviceTaintEffect::Other,
    }
}

fn tolerations(wire: Option<&Vec<k8s::DeviceToleration>>) -> Vec<DeviceToleration> {
    let toleration = |it: &k8s::DeviceToleration| DeviceToleration {
        key: it.key.as_deref().unwrap_or_default().into(),
        exists: it.operator.as_deref() == Some("Exists"),
        value: it.value.as_deref().unwrap_or_default().into(),
        effect: it.effect.as_deref().filter(|it| !it.is_empty()).map(effect),
        toleration_seconds: it.toleration_seconds,
    };
    wire.into_iter().flatten().map(toleration).collect()
}

/// As JSON with its fields in order: equal configurations read alike.
fn opaque(wire: Option<&k8s::OpaqueDeviceConfiguration>) -> Arc<str> {
    let value = wire.and_then(|it| serde_json::to_value(it).ok());
    value.map(|it| it.to_string()).unwrap_or_default().into()
}
