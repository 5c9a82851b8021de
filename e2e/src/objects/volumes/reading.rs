//! What the state of claims and volumes says.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, ObjectReference, PersistentVolume, PersistentVolumeClaim,
};

/// The node for which a delayed claim is to be provisioned.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

pub trait ClaimState {
    /// It has a volume, and the controller has finished with both.
    fn is_bound(&self) -> bool;
    /// The name of its volume.
    fn volume(&self) -> Option<&str>;
    fn selected_node(&self) -> Option<&str>;
    fn phase(&self) -> &str;
    fn uid_str(&self) -> &str;
}

impl ClaimState for PersistentVolumeClaim {
    fn is_bound(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        let completed = annotations.is_some_and(|them| them.contains_key(BIND_COMPLETED));
        completed && self.volume().is_some()
    }

    fn volume(&self) -> Option<&str> {
        self.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
    }

    fn selected_node(&self) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(SELECTED_NODE).map(String::as_str)
    }

    fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    fn uid_str(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }
}

pub trait VolumeState {
    fn claim(&self) -> Option<&ObjectReference>;
    /// `namespace/name` of its claim.
    fn claimant(&self) -> Option<String>;
    /// A controller may take the claim from it again, for it was not a person who gave it.
    fn is_bound_by_controller(&self) -> bool;
    fn phase(&self) -> &str;
    /// Whether a node with these labels can use it, by its affinity and by its own labels of zones.
    fn fits(&self, node_labels: &BTreeMap<String, String>) -> bool;
    /// `driver/handle` of a CSI volume.
    fn csi_name(&self) -> Option<(String, String)>;
}

impl VolumeState for PersistentVolume {
    fn claim(&self) -> Option<&ObjectReference> {
        self.spec.as_ref()?.claim_ref.as_ref()
    }

    fn claimant(&self) -> Option<String> {
        let claim = self.claim()?;
        Some(format!("{}/{}", claim.namespace.as_deref()?, claim.name.as_deref()?))
    }

    fn is_bound_by_controller(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        let value = annotations.and_then(|them| them.get(BOUND_BY_CONTROLLER));
        value.is_some_and(|value| value == "yes")
    }

    fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    fn fits(&self, node_labels: &BTreeMap<String, String>) -> bool {
        affinity_fits(self, node_labels) && zones_fit(self, node_labels)
    }

    fn csi_name(&self) -> Option<(String, String)> {
        let source = self.spec.as_ref()?.csi.as_ref()?;
        Some((source.driver.clone(), source.volume_handle.clone()))
    }
}

/// Of the operators only those that the templates write.
fn affinity_fits(volume: &PersistentVolume, node_labels: &BTreeMap<String, String>) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else {
        return true;
    };
    let holds = |requirement: &NodeSelectorRequirement| {
        let values = requirement.values.iter().flatten();
        requirement.operator == "In"
            && node_labels.get(&requirement.key).is_some_and(|has| values.clone().any(|v| v == has))
    };
    required.node_selector_terms.iter().any(|term| {
        let mut expressions = term.match_expressions.iter().flatten();
        expressions.clone().next().is_some() && expressions.all(holds)
    })
}

/// The labels `topology.kubernetes.io/zone` and `…/region`; several values are divided by `__`.
fn zones_fit(volume: &PersistentVolume, node_labels: &BTreeMap<String, String>) -> bool {
    let keys = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
    if !keys.iter().any(|key| node_labels.contains_key(*key)) {
        return true;
    }
    let labels = volume.metadata.labels.as_ref();
    keys.iter().all(|key| match labels.and_then(|labels| labels.get(*key)) {
        None => true,
        Some(zones) => node_labels.get(*key).is_some_and(|has| zones.split("__").any(|z| z == has)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{ZONE, affinity};
    use super::*;

    fn volume(labels: &Value, affinity: Option<&Value>) -> PersistentVolume {
        let spec = json!({ "nodeAffinity": affinity });
        serde_json::from_value(json!({ "metadata": { "labels": labels }, "spec": spec })).unwrap()
    }

    fn in_zone(zone: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(ZONE.to_owned(), zone.to_owned())])
    }

    #[test]
    fn a_volume_fits_where_one_of_its_values_is_the_nodes() {
        let volume = volume(&json!({}), Some(&affinity(ZONE, &["a", "b"])));
        assert!(volume.fits(&in_zone("b")));
        assert!(!volume.fits(&in_zone("c")));
        assert!(!volume.fits(&BTreeMap::new()));
    }

    #[test]
    fn a_volume_without_affinity_fits_anywhere() {
        assert!(volume(&json!({}), None).fits(&BTreeMap::new()));
    }

    #[test]
    fn zone_labels_bind_only_nodes_that_have_some() {
        let volume = volume(&json!({ ZONE: "a__b" }), None);
        assert!(volume.fits(&in_zone("a")));
        assert!(!volume.fits(&in_zone("c")));
        assert!(volume.fits(&BTreeMap::new()));
    }

    #[test]
    fn a_claim_without_the_controllers_mark_is_not_bound() {
        let claim = |annotations: Value| -> PersistentVolumeClaim {
            let metadata = json!({ "annotations": annotations });
            let spec = json!({ "volumeName": "v" });
            serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
        };
        assert!(!claim(json!({})).is_bound());
        assert!(claim(json!({ BIND_COMPLETED: "yes" })).is_bound());
    }
}
