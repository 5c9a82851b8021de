//! What the server fills into objects of built-in types that do not say it. Pods have a file of their
//! own.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::catalog::{ResourceType, Rules};
use crate::json::{as_map, default, metadata, section, text};

/// Into new objects and into changed ones.
pub(crate) fn fill_in(ty: &ResourceType, object: &mut Value) {
    match ty.rules {
        Rules::Namespace => {
            let name = text(object, "/metadata/name").to_owned();
            let labels = metadata(object).entry("labels").or_insert(Value::Null);
            as_map(labels).insert("kubernetes.io/metadata.name".to_owned(), json!(name));
        }
        Rules::Secret => fill_in_secret(object),
        Rules::Service => fill_in_service(object),
        Rules::Budget => fill_in_budget(object),
        Rules::PriorityClass => {
            default(as_map(object), "preemptionPolicy", "PreemptLowerPriority");
            default(as_map(object), "value", 0);
        }
        _ => {}
    }
}

pub(crate) fn new_namespace(object: &mut Value) {
    section(object, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
    as_map(object).insert("status".to_owned(), json!({ "phase": "Active" }));
}

/// A Node may be created with its status. The taint for Nodes that are not ready yet is left out:
/// nothing here would take it off again.
pub(crate) fn new_node(object: &mut Value) {
    section(object, "spec");
    let status = section(object, "status");
    if let Some(capacity) = status.get("capacity").cloned() {
        status.entry("allocatable").or_insert(capacity);
    }
    let endpoints = json!({ "kubeletEndpoint": { "Port": 0 } });
    default(status, "daemonEndpoints", endpoints);
}

/// Plain text is for writing only: it is kept in base64, with the rest.
fn fill_in_secret(object: &mut Value) {
    let texts = as_map(object).remove("stringData");
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
        section(object, "data").insert(key.clone(), json!(ByteString(bytes)));
    }
    default(as_map(object), "type", "Opaque");
}

/// No address is drawn for a Service: nothing here would answer at it.
fn fill_in_service(object: &mut Value) {
    let spec = section(object, "spec");
    default(spec, "type", "ClusterIP");
    default(spec, "sessionAffinity", "None");
    default(spec, "internalTrafficPolicy", "Cluster");
    default(spec, "ipFamilies", json!(["IPv4"]));
    default(spec, "ipFamilyPolicy", "SingleStack");
    if let Some(address) = spec.get("clusterIP").cloned() {
        default(spec, "clusterIPs", json!([address]));
    }
    if let Some(Value::Array(ports)) = spec.get_mut("ports") {
        for port in ports {
            let port = as_map(port);
            default(port, "protocol", "TCP");
            let number = port.get("port").cloned().unwrap_or_default();
            default(port, "targetPort", number);
        }
    }
    default(as_map(object), "status", json!({ "loadBalancer": {} }));
}

fn fill_in_budget(object: &mut Value) {
    let status = section(object, "status");
    for count in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
        default(status, count, 0);
    }
}
