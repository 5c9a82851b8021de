//! ResourceClaims and DeviceClasses.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::resource::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use model::{
    ClaimSpec, ClaimUser, Constraint, DeviceClass, DeviceCount, DeviceId, DeviceRequest,
    DeviceSelector, PodUid, RequestAlternatives, RequestConfig, ResourceClaim, SubRequest,
};

use super::allocation::allocation;
use super::{opaque, quantities, text, texts, tolerations};
use crate::tracker::key;

/// By this annotation a scheduler knows the claim that it has made for extended resources of a Pod.
const EXTENDED_RESOURCES: &str = "resource.kubernetes.io/extended-resource-claim";

pub(crate) fn device_class(wire: &k8s::DeviceClass) -> DeviceClass {
    let k8s::DeviceClass { metadata, spec } = wire;
    let created = metadata.creation_timestamp.as_ref();
    let configs = spec.config.iter().flatten();
    DeviceClass {
        name: metadata.name.as_deref().unwrap_or_default().into(),
        created_at_unix_s: created.map_or(0, |time| time.0.as_second()),
        selectors: selectors(spec.selectors.as_ref()),
        configs: configs.map(|it| opaque(it.opaque.as_ref())).collect(),
        extended_resource: spec.extended_resource_name.as_deref().map(text),
    }
}

pub(crate) fn resource_claim(wire: &k8s::ResourceClaim) -> ResourceClaim {
    let k8s::ResourceClaim { metadata, spec, status } = wire;
    let owners = metadata.owner_references.iter().flatten();
    let controller = owners.into_iter().find(|owner| owner.controller == Some(true));
    let annotations = metadata.annotations.as_ref();
    let status = status.as_ref();
    let users = status.and_then(|it| it.reserved_for.as_ref()).into_iter().flatten();
    ResourceClaim {
        key: key(metadata),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
        spec: Arc::new(spec.devices.as_ref().map(claim_spec).unwrap_or_default()),
        is_deleting: metadata.deletion_timestamp.is_some(),
        has_finalizer: metadata
            .finalizers
            .iter()
            .flatten()
            .any(|it| it == ResourceClaim::FINALIZER),
        controller: controller.map(|owner| PodUid::new(&owner.uid)),
        is_for_extended_resources: annotations
            .is_some_and(|it| it.get(EXTENDED_RESOURCES).is_some_and(|it| it == "true")),
        allocation: status.and_then(|it| it.allocation.as_ref()).map(|it| Arc::new(allocation(it))),
        reserved_for: users
            .map(|it| ClaimUser {
                is_pod: it.resource == "pods"
                    && it.api_group.as_deref().unwrap_or_default().is_empty(),
                name: text(&it.name),
                uid: text(&it.uid),
            })
            .collect(),
        true_conditions: true_conditions(status.and_then(|it| it.devices.as_ref())),
    }
}

fn true_conditions(
    devices: Option<&Vec<k8s::AllocatedDeviceStatus>>,
) -> BTreeMap<DeviceId, Vec<Arc<str>>> {
    let mut by_device: BTreeMap<DeviceId, Vec<Arc<str>>> = BTreeMap::new();
    for device in devices.into_iter().flatten() {
        let id = DeviceId {
            driver: text(&device.driver),
            pool: text(&device.pool),
            device: text(&device.device),
        };
        let conditions = device.conditions.iter().flatten();
        let is_true = conditions.filter(|it: &&Condition| it.status == "True");
        by_device.entry(id).or_default().extend(is_true.map(|it| text(&it.type_)));
    }
    by_device
}

fn claim_spec(wire: &k8s::DeviceClaim) -> ClaimSpec {
    let configs = wire.config.iter().flatten();
    ClaimSpec {
        requests: wire.requests.iter().flatten().map(request).collect(),
        constraints: wire.constraints.iter().flatten().map(constraint).collect(),
        configs: configs
            .map(|it| RequestConfig {
                requests: texts(it.requests.as_ref()),
                opaque: opaque(it.opaque.as_ref()),
            })
            .collect(),
    }
}

fn request(wire: &k8s::DeviceRequest) -> DeviceRequest {
    let alternatives = match (&wire.exactly, &wire.first_available) {
        (Some(it), _) => RequestAlternatives::Exactly(SubRequest {
            name: text(&wire.name),
            class: text(&it.device_class_name),
            selectors: selectors(it.selectors.as_ref()),
            count: count(it.allocation_mode.as_deref(), it.count),
            admin_access: it.admin_access == Some(true),
            tolerations: tolerations(it.tolerations.as_ref()),
            capacity: quantities(it.capacity.as_ref().and_then(|it| it.requests.as_ref())),
        }),
        (None, Some(all)) => RequestAlternatives::FirstAvailable(
            all.iter()
                .map(|it| SubRequest {
                    name: text(&it.name),
                    class: text(&it.device_class_name),
                    selectors: selectors(it.selectors.as_ref()),
                    count: count(it.allocation_mode.as_deref(), it.count),
                    admin_access: false,
                    tolerations: tolerations(it.tolerations.as_ref()),
                    capacity: quantities(it.capacity.as_ref().and_then(|it| it.requests.as_ref())),
                })
                .collect(),
        ),
        (None, None) => RequestAlternatives::Unknown,
    };
    DeviceRequest { name: text(&wire.name), alternatives }
}

/// The API server fills in `ExactCount` and 1.
fn count(mode: Option<&str>, count: Option<i64>) -> DeviceCount {
    match mode {
        None | Some("" | "ExactCount") => DeviceCount::Exact(count.unwrap_or(1)),
        Some("All") => DeviceCount::All,
        Some(other) => DeviceCount::Unknown(other.into()),
    }
}

fn selectors(wire: Option<&Vec<k8s::DeviceSelector>>) -> Vec<DeviceSelector> {
    let selector = |it: &k8s::DeviceSelector| match &it.cel {
        Some(cel) => DeviceSelector::Cel(text(&cel.expression)),
        None => DeviceSelector::Unknown,
    };
    wire.into_iter().flatten().map(selector).collect()
}

fn constraint(wire: &k8s::DeviceConstraint) -> Constraint {
    let requests = texts(wire.requests.as_ref());
    match (&wire.match_attribute, &wire.distinct_attribute) {
        (Some(attribute), _) => Constraint::Match { requests, attribute: text(attribute) },
        (None, Some(attribute)) => Constraint::Distinct { requests, attribute: text(attribute) },
        (None, None) => Constraint::Unknown,
    }
}
