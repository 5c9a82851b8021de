//! PersistentVolumes: which claim each is for, and on which Nodes it can be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{ClusterObject, ClusterObjectId, ClusterObjectKind, Event, WatchedKind};
use model::{
    AccessModes, ClaimRef, InTreeDisk, NodeSelector, ObjectKey, PersistentVolume, VolumeMode,
    VolumePhase, VolumeSource,
};
use serde::Deserialize;

use super::volume_fields::{BETA_CLASS, annotation, quantity};
use super::{
    Gone, WatchState, WatchedResource, WireNodeSelector, key, kube_resource, labels, meta,
    raw_node_terms,
};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireVolumeObject {
    #[serde(deserialize_with = "meta::of_volume")]
    metadata: meta::ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    capacity: BTreeMap<String, String>,
    access_modes: Vec<String>,
    storage_class_name: String,
    volume_mode: Option<String>,
    volume_attributes_class_name: Option<String>,
    claim_ref: Option<WireClaimRef>,
    node_affinity: Option<WireVolumeAffinity>,
    csi: Option<WireCsi>,
    gce_persistent_disk: Option<WireGce>,
    aws_elastic_block_store: Option<WireId>,
    azure_disk: Option<WireAzure>,
    cinder: Option<WireId>,
    portworx_volume: Option<WireId>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireClaimRef {
    namespace: String,
    name: String,
    uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireVolumeAffinity {
    required: Option<WireNodeSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCsi {
    driver: String,
    volume_handle: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireGce {
    pd_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireId {
    #[serde(rename = "volumeID")]
    volume_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireAzure {
    #[serde(rename = "diskURI")]
    disk_uri: String,
    kind: Option<String>,
}

kube_resource!(WireVolumeObject, "PersistentVolume", "", "v1", "persistentvolumes", Cluster);

impl WatchedResource for WireVolumeObject {
    const KIND: WatchedKind = WatchedKind::Cluster(ClusterObjectKind::PersistentVolume);

    fn seen(self, _: &mut WatchState) -> Option<Event> {
        let volume = self.volume();
        Some(Event::seen(ClusterObject::PersistentVolume(volume.name.clone(), Arc::new(volume))))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(ClusterObjectId::PersistentVolume(key.name)))
    }
}

impl WireVolumeObject {
    /// Whether it is for this claim.
    pub fn is_for(&self, claim: &ObjectKey, claim_uid: &str) -> bool {
        let claim_ref = self.spec.claim_ref.as_ref().map(claim_ref);
        claim_ref.is_some_and(|it| it.key == *claim && it.uid.as_deref() == Some(claim_uid))
    }

    fn volume(&self) -> PersistentVolume {
        let Self { metadata, spec, status } = self;
        let volume_labels = metadata.labels.as_ref().map(labels).unwrap_or_default();
        let terms = spec.node_affinity.as_ref().and_then(|it| it.required.as_ref());
        let terms = terms.map(raw_node_terms);
        let source = match (&spec.csi, spec.disk()) {
            (Some(csi), _) => VolumeSource::Csi {
                driver: csi.driver.as_str().into(),
                handle: csi.volume_handle.as_str().into(),
            },
            (None, Some(disk)) => VolumeSource::in_tree(disk, &volume_labels, terms.as_deref()),
            (None, None) => VolumeSource::Other,
        };
        let beta_class = annotation(metadata, BETA_CLASS);
        PersistentVolume {
            name: key(metadata).name,
            uid: text(metadata.uid.as_deref()),
            resource_version: text(metadata.resource_version.as_deref()),
            class: beta_class.unwrap_or(&spec.storage_class_name).into(),
            capacity: quantity(&spec.capacity),
            phase: VolumePhase::parse(status.phase.as_deref()),
            is_deleting: metadata.deletion_timestamp.is_some(),
            claim_ref: spec.claim_ref.as_ref().map(claim_ref),
            access_modes: AccessModes::parse(spec.access_modes.iter().map(String::as_str)),
            volume_mode: VolumeMode::parse(spec.volume_mode.as_deref()),
            attributes_class: text(spec.volume_attributes_class_name.as_deref()),
            node_affinity: terms.as_deref().map(NodeSelector::parse),
            labels: volume_labels,
            source,
            is_bound_by_controller: annotation(metadata, BOUND_BY_CONTROLLER).is_some(),
        }
    }
}

/// Says that `claimRef` was not written by an administrator.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

impl Spec {
    fn disk(&self) -> Option<InTreeDisk> {
        let id = |it: &WireId| Arc::from(it.volume_id.as_str());
        let gce = self.gce_persistent_disk.as_ref();
        let azure = self.azure_disk.as_ref();
        gce.map(|it| InTreeDisk::GcePersistentDisk { pd_name: it.pd_name.as_str().into() })
            .or_else(|| {
                let volume_id = self.aws_elastic_block_store.as_ref().map(id)?;
                Some(InTreeDisk::AwsElasticBlockStore { volume_id })
            })
            .or_else(|| {
                let azure = azure?;
                let kind = azure.kind.as_deref().map(Arc::from);
                Some(InTreeDisk::AzureDisk { disk_uri: azure.disk_uri.as_str().into(), kind })
            })
            .or_else(|| Some(InTreeDisk::Cinder { volume_id: self.cinder.as_ref().map(id)? }))
            .or_else(|| {
                Some(InTreeDisk::Portworx { volume_id: self.portworx_volume.as_ref().map(id)? })
            })
    }
}

fn claim_ref(wire: &WireClaimRef) -> ClaimRef {
    let WireClaimRef { namespace, name, uid } = wire;
    let uid = Some(uid.as_str()).filter(|uid| !uid.is_empty()).map(Arc::from);
    ClaimRef { key: ObjectKey::new(namespace, name), uid }
}

fn text(text: Option<&str>) -> Arc<str> {
    text.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_volume_says_whose_it_is_and_where_it_can_be_used() {
        let wire: WireVolumeObject = serde_json::from_value(json!({
            "metadata": {
                "name": "pv-1", "uid": "u1", "resourceVersion": "7",
                "labels": {"topology.kubernetes.io/zone": "a"},
                "annotations": {"pv.kubernetes.io/bound-by-controller": "yes", "other": "x"},
            },
            "spec": {
                "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast", "claimRef": {"namespace": "a", "name": "c", "uid": "uc"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a"]}]}]}},
                "csi": {"driver": "d.example", "volumeHandle": "h"},
            },
            "status": {"phase": "Bound"},
        }))
        .unwrap();
        let volume = wire.volume();
        assert_eq!(
            (&*volume.name, &*volume.class, volume.capacity.value()),
            ("pv-1", "fast", 5 << 30)
        );
        assert_eq!(volume.phase, VolumePhase::Bound);
        assert!(volume.is_bound_by_controller);
        let claim = volume.claim_ref.as_ref().unwrap();
        assert_eq!((claim.key.to_string().as_str(), claim.uid.as_deref()), ("a/c", Some("uc")));
        assert!(volume.fits(&[("zone".into(), "a".into())].into()));
        assert!(!volume.fits(&[("zone".into(), "b".into())].into()));
        assert_eq!(
            volume.source,
            VolumeSource::Csi { driver: "d.example".into(), handle: "h".into() }
        );
    }

    #[test]
    fn a_volume_that_says_nothing_is_free_and_pending() {
        let volume = WireVolumeObject::default().volume();
        assert_eq!((volume.phase, volume.claim_ref), (VolumePhase::Pending, None));
        assert_eq!(volume.source, VolumeSource::Other);
    }
}
