//! What stands behind the volumes of Pods.

use std::sync::Arc;

use model::{
    AccessModes, BindingMode, ClaimRef, CsiDriver, CsiNode, CsiStorageCapacity, InTreeDisk,
    InlineDisk, NodeName, NodeSelector, ObjectKey, PersistentVolume, PersistentVolumeClaim,
    PodVolume, Quantity, RawNodeTerm, StorageClass, VolumeAttachment, VolumeMode, VolumePhase,
    VolumeSource,
};
use rules::ClusterObjects;
use serde_json::Value;

use super::fields::{items, labels, small_int, text, texts};
use super::terms::{label_selector, requirements};

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub fn put_all(case: &Value, objects: &mut ClusterObjects) {
    for volume in items(&case["volumes"]).iter().map(volume) {
        objects.volumes.insert(volume.name.clone(), volume.into());
    }
    for claim in items(&case["claims"]).iter().map(claim) {
        objects.claims.insert(claim.key.clone(), claim.into());
    }
    for class in items(&case["classes"]).iter().map(class) {
        objects.storage_classes.insert(class.name.clone(), class);
    }
    for node in items(&case["csiNodes"]).iter().map(csi_node) {
        objects.csi_nodes.insert(node.name.clone(), node);
    }
    for driver in items(&case["csiDrivers"]) {
        let name: Arc<str> = name(driver).into();
        let has_storage_capacity = driver["spec"]["storageCapacity"] == true;
        objects.csi_drivers.insert(name.clone(), CsiDriver { name, has_storage_capacity });
    }
    for capacity in items(&case["capacities"]).iter().map(capacity) {
        objects.capacities.insert(capacity.key.clone(), capacity);
    }
    for attachment in items(&case["attachments"]).iter().map(attachment) {
        objects.attachments.insert(attachment.name.clone(), attachment);
    }
}

/// Those of a Pod that concern scheduling.
pub fn pod_volumes(pod: &Value) -> Vec<PodVolume> {
    let pod_name = name(pod);
    let volumes = items(&pod["spec"]["volumes"]).iter();
    volumes.filter_map(|volume| pod_volume(pod_name, volume)).collect()
}

fn pod_volume(pod_name: &str, volume: &Value) -> Option<PodVolume> {
    let has = |source: &str| !volume[source].is_null();
    if has("persistentVolumeClaim") {
        return Some(PodVolume::Claim(text(&volume["persistentVolumeClaim"]["claimName"]).into()));
    }
    if has("ephemeral") {
        let claim = format!("{pod_name}-{}", text(&volume["name"]));
        return Some(PodVolume::Ephemeral(claim.into()));
    }
    let (iscsi, rbd, gce) = (&volume["iscsi"], &volume["rbd"], &volume["gcePersistentDisk"]);
    let is_read_only = |source: &Value| source["readOnly"] == true;
    if has("iscsi") {
        let iqn = text(&iscsi["iqn"]).into();
        return Some(PodVolume::Disk(InlineDisk::Iscsi { iqn, is_read_only: is_read_only(iscsi) }));
    }
    if has("rbd") {
        return Some(PodVolume::Disk(InlineDisk::Rbd {
            monitors: texts(&rbd["monitors"]).collect(),
            pool: text(&rbd["pool"]).into(),
            image: text(&rbd["image"]).into(),
            is_read_only: is_read_only(rbd),
        }));
    }
    Some(PodVolume::Disk(match in_tree(volume)? {
        InTreeDisk::GcePersistentDisk { pd_name } => {
            InlineDisk::GcePersistentDisk { pd_name, is_read_only: is_read_only(gce) }
        }
        InTreeDisk::AwsElasticBlockStore { volume_id } => {
            InlineDisk::AwsElasticBlockStore { volume_id }
        }
        InTreeDisk::AzureDisk { disk_uri, kind } => InlineDisk::AzureDisk { disk_uri, kind },
        InTreeDisk::Cinder { volume_id } => InlineDisk::Cinder { volume_id },
        InTreeDisk::Portworx { volume_id } => InlineDisk::Portworx { volume_id },
    }))
}

/// From a volume of a Pod, or the spec of a PersistentVolume.
fn in_tree(volume: &Value) -> Option<InTreeDisk> {
    let source = |name: &str| volume.get(name).filter(|source| !source.is_null());
    let id = |source: &Value| text(&source["volumeID"]).into();
    if let Some(gce) = source("gcePersistentDisk") {
        return Some(InTreeDisk::GcePersistentDisk { pd_name: text(&gce["pdName"]).into() });
    }
    if let Some(ebs) = source("awsElasticBlockStore") {
        return Some(InTreeDisk::AwsElasticBlockStore { volume_id: id(ebs) });
    }
    if let Some(azure) = source("azureDisk") {
        let kind = azure["kind"].as_str().map(Arc::from);
        return Some(InTreeDisk::AzureDisk { disk_uri: text(&azure["diskURI"]).into(), kind });
    }
    if let Some(cinder) = source("cinder") {
        return Some(InTreeDisk::Cinder { volume_id: id(cinder) });
    }
    source("portworxVolume").map(|portworx| InTreeDisk::Portworx { volume_id: id(portworx) })
}

fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

fn key(object: &Value) -> ObjectKey {
    ObjectKey::new(text(&object["metadata"]["namespace"]), name(object))
}

fn class_of(object: &Value) -> Arc<str> {
    let annotated = object["metadata"]["annotations"][BETA_CLASS].as_str();
    annotated.unwrap_or_else(|| text(&object["spec"]["storageClassName"])).into()
}

fn quantity(field: &Value) -> Option<Quantity> {
    field.as_str().map(|amount| amount.parse().expect("a quantity"))
}

fn volume(object: &Value) -> PersistentVolume {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let volume_labels = labels(&metadata["labels"]);
    let required = &spec["nodeAffinity"]["required"];
    let terms: Option<Vec<RawNodeTerm>> = (!required.is_null()).then(|| {
        let term = |term: &Value| RawNodeTerm {
            expressions: requirements(&term["matchExpressions"]),
            fields: requirements(&term["matchFields"]),
        };
        items(&required["nodeSelectorTerms"]).iter().map(term).collect()
    });
    let csi = &spec["csi"];
    let source = match in_tree(spec) {
        Some(disk) => VolumeSource::in_tree(disk, &volume_labels, terms.as_deref()),
        None if csi.is_null() => VolumeSource::Other,
        None => VolumeSource::Csi {
            driver: text(&csi["driver"]).into(),
            handle: text(&csi["volumeHandle"]).into(),
        },
    };
    let reference = &spec["claimRef"];
    PersistentVolume {
        uid: text(&metadata["uid"]).into(),
        resource_version: text(&metadata["resourceVersion"]).into(),
        class: class_of(object),
        capacity: quantity(&spec["capacity"]["storage"]).unwrap_or_default(),
        phase: VolumePhase::parse(object["status"]["phase"].as_str()),
        is_deleting: !metadata["deletionTimestamp"].is_null(),
        claim_ref: (!reference.is_null()).then(|| ClaimRef {
            key: ObjectKey::new(text(&reference["namespace"]), text(&reference["name"])),
            uid: reference["uid"].as_str().map(Arc::from),
        }),
        access_modes: AccessModes::parse(items(&spec["accessModes"]).iter().map(text)),
        volume_mode: VolumeMode::parse(spec["volumeMode"].as_str()),
        attributes_class: text(&spec["volumeAttributesClassName"]).into(),
        node_affinity: terms.as_deref().map(NodeSelector::parse),
        labels: volume_labels,
        source,
        ..PersistentVolume::new(name(object))
    }
}

fn claim(object: &Value) -> PersistentVolumeClaim {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let annotation = |key: &str| metadata["annotations"][key].as_str().map(Arc::from);
    let selector = &spec["selector"];
    let owners = items(&metadata["ownerReferences"]).iter();
    PersistentVolumeClaim {
        uid: text(&metadata["uid"]).into(),
        resource_version: text(&metadata["resourceVersion"]).into(),
        class: class_of(object),
        request: quantity(&spec["resources"]["requests"]["storage"]).unwrap_or_default(),
        volume_name: spec["volumeName"].as_str().map(Arc::from),
        is_bind_completed: annotation("pv.kubernetes.io/bind-completed").is_some(),
        is_lost: object["status"]["phase"] == "Lost",
        is_deleting: !metadata["deletionTimestamp"].is_null(),
        selected_node: annotation("volume.kubernetes.io/selected-node"),
        access_modes: AccessModes::parse(items(&spec["accessModes"]).iter().map(text)),
        volume_mode: VolumeMode::parse(spec["volumeMode"].as_str()),
        attributes_class: text(&spec["volumeAttributesClassName"]).into(),
        selector: (!selector.is_null()).then(|| label_selector(selector)),
        controller: owners
            .filter(|owner| owner["controller"] == true)
            .map(|owner| text(&owner["uid"]).into())
            .next(),
        ..PersistentVolumeClaim::new(key(object))
    }
}

fn class(object: &Value) -> StorageClass {
    let term = |term: &Value| {
        let expressions = items(&term["matchLabelExpressions"]).iter();
        StorageClass::topology_term(expressions.map(|expression| {
            let values = items(&expression["values"]).iter().map(|it| text(it).to_owned());
            (text(&expression["key"]), values.collect())
        }))
    };
    StorageClass {
        name: name(object).into(),
        provisioner: text(&object["provisioner"]).into(),
        binding_mode: object["volumeBindingMode"].as_str().map(BindingMode::parse),
        allowed_topologies: items(&object["allowedTopologies"]).iter().map(term).collect(),
    }
}

fn csi_node(object: &Value) -> CsiNode {
    let driver = |driver: &Value| {
        let count = &driver["allocatable"]["count"];
        (text(&driver["name"]).into(), (!count.is_null()).then(|| small_int(count)))
    };
    let annotations = &object["metadata"]["annotations"];
    let migrated = annotations["storage.alpha.kubernetes.io/migrated-plugins"].as_str();
    CsiNode {
        name: name(object).into(),
        drivers: items(&object["spec"]["drivers"]).iter().map(driver).collect(),
        migrated_plugins: CsiNode::parse_migrated_plugins(migrated),
    }
}

fn capacity(object: &Value) -> CsiStorageCapacity {
    let topology = &object["nodeTopology"];
    let capacity = quantity(&object["capacity"]);
    CsiStorageCapacity {
        key: key(object),
        class: text(&object["storageClassName"]).into(),
        node_topology: (!topology.is_null()).then(|| label_selector(topology)),
        limit: quantity(&object["maximumVolumeSize"]).or(capacity),
        capacity,
    }
}

fn attachment(object: &Value) -> VolumeAttachment {
    let spec = &object["spec"];
    VolumeAttachment {
        name: name(object).into(),
        node: NodeName::new(text(&spec["nodeName"])),
        attacher: text(&spec["attacher"]).into(),
        volume_name: spec["source"]["persistentVolumeName"].as_str().map(Arc::from),
    }
}
