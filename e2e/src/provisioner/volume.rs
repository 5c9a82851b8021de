//! The PersistentVolume that the provisioner makes for a claim.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::NAME;
use super::conduct::Conduct;
use crate::error::{Doing as _, Result};
use crate::objects::volumes::{ClaimState as _, HOSTNAME, ZONE, affinity};

/// Written on every volume that was not made by hand.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

pub(super) fn waits_for_a_node(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

pub(super) fn is_ours(volume: &PersistentVolume) -> bool {
    volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == NAME)
}

/// In the zone of the node, or on the node alone where there are no zones; anywhere without a node.
pub(super) fn volume_for(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
    conduct: &Conduct,
) -> Result<PersistentVolume> {
    let name = format!("pvc-{}", claim.uid_str());
    let spec = claim.spec.as_ref();
    let requests = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let object = json!({
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: NAME } },
        "spec": {
            "capacity": requests,
            "accessModes": spec.and_then(|spec| spec.access_modes.as_ref()),
            "volumeMode": spec.and_then(|spec| spec.volume_mode.as_ref()),
            "storageClassName": class.name_any(),
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": { "driver": NAME, "volumeHandle": name },
            "nodeAffinity": home(node, conduct),
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(),
                "name": claim.name_any(),
                "uid": claim.uid_str(),
            },
        },
    });
    serde_json::from_value(object).doing(format!("making a volume for {}", claim.name_any()))
}

fn home(node: Option<&Node>, conduct: &Conduct) -> Option<Value> {
    if let Some(zone) = &conduct.zone {
        return Some(affinity(ZONE, &[zone]));
    }
    let labels = node?.labels();
    let key = if labels.contains_key(ZONE) { ZONE } else { HOSTNAME };
    Some(affinity(key, &[labels.get(key)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(node_labels: &Value) -> PersistentVolume {
        let claim = json!({
            "metadata": { "namespace": "team", "name": "data", "uid": "u1" },
            "spec": { "resources": { "requests": { "storage": "1Gi" } } },
        });
        let class = json!({ "metadata": { "name": "c" }, "provisioner": NAME });
        let node: Node =
            serde_json::from_value(json!({ "metadata": { "labels": node_labels } })).unwrap();
        let claim = serde_json::from_value(claim).unwrap();
        let class = serde_json::from_value(class).unwrap();
        volume_for(&claim, &class, Some(&node), &Conduct::default()).unwrap()
    }

    fn key(volume: &PersistentVolume) -> String {
        let affinity = volume.spec.as_ref().unwrap().node_affinity.as_ref().unwrap();
        let terms = &affinity.required.as_ref().unwrap().node_selector_terms;
        terms[0].match_expressions.as_ref().unwrap()[0].key.clone()
    }

    #[test]
    fn a_volume_is_named_after_its_claim_and_belongs_to_it() {
        let volume = volume(&json!({ HOSTNAME: "n" }));
        assert_eq!(volume.name_any(), "pvc-u1");
        let claim = volume.spec.as_ref().unwrap().claim_ref.as_ref().unwrap();
        assert_eq!(claim.uid.as_deref(), Some("u1"));
        assert!(is_ours(&volume));
    }

    #[test]
    fn a_volume_is_at_home_in_the_zone_of_its_node_if_that_has_one() {
        assert_eq!(key(&volume(&json!({ HOSTNAME: "n", ZONE: "a" }))), ZONE);
        assert_eq!(key(&volume(&json!({ HOSTNAME: "n" }))), HOSTNAME);
    }
}
