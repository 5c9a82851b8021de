//! From the JSON of a workload's volumes to the words of the engine, as the driver reads them (`driver/src/kinds`).

use std::sync::Arc;

use e2e::{Error, Result};
use engine::ClusterObject;
use model::{
    AccessModes, BindingMode, ClaimRef, CsiNode, ObjectKey, PersistentVolume,
    PersistentVolumeClaim, PodVolume, Quantity, StorageClass, VolumePhase, VolumeSource,
};
use serde_json::Value;

use super::super::fragment::Metadata;
use super::super::translate::{labels, node_selector};
use super::fragment::{
    ClaimSpec, CsiNodeSpec, ObjectFragment, PodVolumeFragment, Storage, VolumeSpec, VolumeStatus,
};

/// The kinds that it knows.
const KINDS: [&str; 4] = ["PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode"];
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// `None`: it is of another kind. Names are unique, so they serve as UIDs too.
pub fn object(object: Value) -> Option<Result<ClusterObject>> {
    KINDS.iter().any(|kind| object["kind"] == *kind).then(|| {
        let doing = "reading an object of the workload";
        let fragment = serde_json::from_value(object);
        read(fragment.map_err(|problem| Error::malformed(doing, problem))?)
    })
}

pub fn pod_volumes(fragments: &[PodVolumeFragment]) -> Arc<[PodVolume]> {
    let claim = |it: &PodVolumeFragment| {
        PodVolume::Claim(it.persistent_volume_claim.claim_name.as_str().into())
    };
    fragments.iter().map(claim).collect()
}

fn read(fragment: ObjectFragment) -> Result<ClusterObject> {
    Ok(match fragment {
        ObjectFragment::PersistentVolume { metadata, spec, status, .. } => {
            let volume = volume(&metadata, &spec, &status)?;
            ClusterObject::PersistentVolume(volume.name.clone(), Arc::new(volume))
        }
        ObjectFragment::PersistentVolumeClaim { metadata, spec, .. } => {
            let claim = claim(&metadata, &spec)?;
            ClusterObject::PersistentVolumeClaim(claim.key.clone(), Arc::new(claim))
        }
        ObjectFragment::StorageClass { metadata, provisioner, binding_mode, .. } => {
            let name: Arc<str> = metadata.name.into();
            let class = StorageClass {
                name: name.clone(),
                provisioner: provisioner.into(),
                binding_mode: binding_mode.as_deref().map(BindingMode::parse),
                allowed_topologies: Vec::new(),
            };
            ClusterObject::StorageClass(name, class)
        }
        ObjectFragment::CsiNode { metadata, spec, .. } => {
            let node = csi_node(&metadata, &spec);
            ClusterObject::CsiNode(node.name.clone(), node)
        }
    })
}

fn volume(
    metadata: &Metadata,
    spec: &VolumeSpec,
    status: &VolumeStatus,
) -> Result<PersistentVolume> {
    let csi = spec.csi.as_ref();
    let source = csi.map_or(VolumeSource::Other, |csi| VolumeSource::Csi {
        driver: csi.driver.as_str().into(),
        handle: csi.volume_handle.as_str().into(),
    });
    let claim_ref = spec
        .claim_ref
        .as_ref()
        .map(|it| ClaimRef { key: ObjectKey::new(&it.namespace, &it.name), uid: None });
    Ok(PersistentVolume {
        uid: metadata.name.as_str().into(),
        resource_version: "1".into(),
        class: spec.storage_class_name.as_str().into(),
        capacity: quantity(&spec.capacity)?,
        phase: VolumePhase::parse(status.phase.as_deref()),
        claim_ref,
        access_modes: AccessModes::parse(spec.access_modes.iter().map(String::as_str)),
        node_affinity: spec.node_affinity.as_ref().map(|it| node_selector(&it.required)),
        labels: labels(&metadata.labels),
        source,
        ..PersistentVolume::new(&metadata.name)
    })
}

fn claim(metadata: &Metadata, spec: &ClaimSpec) -> Result<PersistentVolumeClaim> {
    let key = ObjectKey::new(&metadata.namespace, &metadata.name);
    Ok(PersistentVolumeClaim {
        uid: metadata.name.as_str().into(),
        resource_version: "1".into(),
        class: spec.storage_class_name.as_str().into(),
        request: quantity(&spec.resources.requests)?,
        volume_name: spec.volume_name.as_deref().map(Arc::from),
        is_bind_completed: metadata.annotations.contains_key(BIND_COMPLETED),
        access_modes: AccessModes::parse(spec.access_modes.iter().map(String::as_str)),
        ..PersistentVolumeClaim::new(key)
    })
}

fn csi_node(metadata: &Metadata, spec: &CsiNodeSpec) -> CsiNode {
    let drivers = spec.drivers.iter().map(|it| {
        let count = it.allocatable.as_ref().and_then(|it| it.count);
        (it.name.as_str().into(), count)
    });
    CsiNode {
        name: metadata.name.as_str().into(),
        drivers: drivers.collect(),
        migrated_plugins: CsiNode::parse_migrated_plugins(None),
    }
}

fn quantity(amount: &Storage) -> Result<Quantity> {
    let doing = "reading an amount of storage";
    amount.storage.parse().map_err(|problem| Error::malformed(doing, problem))
}
