//! ResourceClaims and DeviceClasses.

use std::sync::Arc;

use model::{
    AllocatedDevice, Allocation, ClaimSpec, Constraint, DeviceClass, DeviceCount, DeviceId,
    DeviceRequest, DeviceSelector, ObjectKey, RequestAlternatives, RequestConfig, ResourceClaim,
    SubRequest,
};
use serde_json::Value;

use super::{items, quantities, text, tolerations, word, words};

pub(super) fn class(class: &Value) -> DeviceClass {
    DeviceClass {
        name: word(&class["metadata"]["name"]),
        created_at_unix_s: 0,
        selectors: selectors(&class["spec"]["selectors"]),
        configs: items(&class["spec"]["config"]).iter().map(opaque).collect(),
        extended_resource: None,
    }
}

pub(super) fn claim(claim: &Value) -> ResourceClaim {
    let (metadata, spec) = (&claim["metadata"], &claim["spec"]["devices"]);
    let key = ObjectKey::new(text(&metadata["namespace"]), text(&metadata["name"]));
    let configs = items(&spec["config"]).iter();
    let spec = ClaimSpec {
        requests: items(&spec["requests"]).iter().map(request).collect(),
        constraints: items(&spec["constraints"]).iter().map(constraint).collect(),
        configs: configs
            .map(|it| RequestConfig { requests: words(&it["requests"]), opaque: opaque(it) })
            .collect(),
    };
    ResourceClaim { uid: word(&metadata["uid"]), spec: spec.into(), ..ResourceClaim::new(key) }
}

fn request(request: &Value) -> DeviceRequest {
    let name = word(&request["name"]);
    let alternatives = match items(&request["firstAvailable"]) {
        [] => RequestAlternatives::Exactly(ask(&name, &request["exactly"])),
        all => RequestAlternatives::FirstAvailable(
            all.iter().map(|it| ask(&word(&it["name"]), it)).collect(),
        ),
    };
    DeviceRequest { name, alternatives }
}

fn ask(name: &Arc<str>, ask: &Value) -> SubRequest {
    let count = match text(&ask["allocationMode"]) {
        "ExactCount" => DeviceCount::Exact(ask["count"].as_i64().expect("a count")),
        "All" => DeviceCount::All,
        other => DeviceCount::Unknown(other.into()),
    };
    SubRequest {
        name: name.clone(),
        class: word(&ask["deviceClassName"]),
        selectors: selectors(&ask["selectors"]),
        count,
        admin_access: ask["adminAccess"] == true,
        tolerations: tolerations(&ask["tolerations"]),
        capacity: quantities(&ask["capacity"]["requests"]),
    }
}

fn selectors(list: &Value) -> Vec<DeviceSelector> {
    let selector = |it: &Value| match it["cel"]["expression"].as_str() {
        Some(expression) => DeviceSelector::Cel(expression.into()),
        None => DeviceSelector::Unknown,
    };
    items(list).iter().map(selector).collect()
}

fn constraint(constraint: &Value) -> Constraint {
    let requests = words(&constraint["requests"]);
    let attribute = |field: &str| constraint[field].as_str().map(Arc::from);
    match (attribute("matchAttribute"), attribute("distinctAttribute")) {
        (Some(attribute), _) => Constraint::Match { requests, attribute },
        (None, Some(attribute)) => Constraint::Distinct { requests, attribute },
        (None, None) => Constraint::Unknown,
    }
}

fn opaque(config: &Value) -> Arc<str> {
    config["opaque"].to_string().into()
}

/// Of a claim that has devices: as much as is read of it.
pub(super) fn allocation(allocation: &Value) -> Allocation {
    let device = |it: &Value| AllocatedDevice {
        request: word(&it["request"]),
        id: DeviceId {
            driver: word(&it["driver"]),
            pool: word(&it["pool"]),
            device: word(&it["device"]),
        },
        admin_access: it["adminAccess"] == true,
        tolerations: Vec::new(),
        binding_conditions: Vec::new(),
        binding_failure_conditions: Vec::new(),
        share_id: it["shareID"].as_str().map(Arc::from),
        consumed_capacity: quantities(&it["consumedCapacity"]),
    };
    Allocation {
        devices: items(&allocation["devices"]["results"]).iter().map(device).collect(),
        ..Allocation::default()
    }
}
