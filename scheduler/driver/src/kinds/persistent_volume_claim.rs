//! PersistentVolumeClaims: what each asks for, and which volume it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::{AccessModes, PersistentVolumeClaim, PodUid, VolumeMode};
use serde::Deserialize;

use super::volume_fields::{BETA_CLASS, annotation, quantity};
use super::{
    Gone, WatchState, WatchedResource, WireSelector, key, kube_resource, label_selector, meta,
};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireClaim {
    #[serde(deserialize_with = "meta::of_volume")]
    metadata: meta::ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    access_modes: Vec<String>,
    resources: Resources,
    selector: Option<WireSelector>,
    storage_class_name: Option<String>,
    volume_attributes_class_name: Option<String>,
    volume_mode: Option<String>,
    volume_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

/// Says that the claim is bound to the volume that it names.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The Node for which a volume is to be made.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

kube_resource!(WireClaim, "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", Namespaced);

impl WatchedResource for WireClaim {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::PersistentVolumeClaim);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let claim = self.claim();
        Some(Event::seen(ClusterObject::PersistentVolumeClaim(claim.key.clone(), Arc::new(claim))))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::PersistentVolumeClaim(key)))
    }
}

impl WireClaim {
    fn claim(&self) -> PersistentVolumeClaim {
        let Self { metadata, spec, status } = self;
        let text = |text: Option<&str>| Arc::from(text.unwrap_or_default());
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        PersistentVolumeClaim {
            key: key(metadata),
            uid: text(metadata.uid.as_deref()),
            resource_version: text(metadata.resource_version.as_deref()),
            class: text(annotation(metadata, BETA_CLASS).or(spec.storage_class_name.as_deref())),
            request: quantity(&spec.resources.requests),
            volume_name: Some(spec.volume_name.as_str())
                .filter(|name| !name.is_empty())
                .map(Arc::from),
            is_bind_completed: annotation(metadata, BIND_COMPLETED).is_some(),
            is_lost: status.phase == "Lost",
            is_deleting: metadata.deletion_timestamp.is_some(),
            selected_node: annotation(metadata, SELECTED_NODE).map(Arc::from),
            access_modes: AccessModes::parse(spec.access_modes.iter().map(String::as_str)),
            volume_mode: VolumeMode::parse(spec.volume_mode.as_deref()),
            attributes_class: text(spec.volume_attributes_class_name.as_deref()),
            selector: spec.selector.as_ref().map(|selector| label_selector(Some(selector))),
            controller: controller.map(|owner| PodUid::new(&owner.uid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_bound_once_it_names_its_volume_and_says_so() {
        let read = |annotations: serde_json::Value, volume: &str| {
            let wire: WireClaim = serde_json::from_value(json!({
                "metadata": {
                    "namespace": "a", "name": "c", "uid": "u", "annotations": annotations,
                    "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "up", "controller": true}],
                },
                "spec": {
                    "storageClassName": "fast", "volumeName": volume,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }))
            .unwrap();
            wire.claim()
        };
        let bound = read(json!({"pv.kubernetes.io/bind-completed": "yes"}), "pv-1");
        assert_eq!(bound.bound_to().map(|it| &**it), Some("pv-1"));
        assert_eq!(bound.controller, Some("up".into()));
        assert_eq!((&*bound.class, bound.request.value()), ("fast", 1 << 30));
        assert_eq!(read(json!({}), "pv-1").bound_to(), None);
        let beta = json!({"volume.beta.kubernetes.io/storage-class": "", SELECTED_NODE: "n1"});
        let beta = read(beta, "");
        assert_eq!((&*beta.class, beta.selected_node.as_deref()), ("", Some("n1")));
    }
}
