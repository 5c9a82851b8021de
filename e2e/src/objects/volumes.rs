//! What volumes are made of: PersistentVolumes, claims, classes, what nodes can attach, and what their state
//! says.

mod reading;
mod removing;

pub use reading::{ClaimState, SELECTED_NODE, VolumeState};
pub use removing::{clear_volumes, remove_host_paths};
pub(super) use removing::{remove_cluster_wide, remove_namespaced};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Doing as _, Result};

pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// A class of this provisioner has only the volumes that people made.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// That of kube-controller-manager itself.
pub const HOST_PATH_PROVISIONER: &str = "kubernetes.io/host-path";

const CLAIM_KIND: &str = "PersistentVolumeClaim";

/// A PersistentVolume to be, kept when its claim goes.
#[derive(Debug, Clone)]
pub struct VolumeTemplate {
    labels: Map<String, Value>,
    spec: Map<String, Value>,
}

impl VolumeTemplate {
    /// A disk of one node.
    pub fn local(class: &str, capacity: &str, node: &str) -> Self {
        Self::new(class, capacity).set("local", json!({ "path": "/mnt/disk" })).on_nodes(&[node])
    }

    /// A volume of a CSI driver, at home everywhere unless it says otherwise.
    pub fn csi(class: &str, capacity: &str, driver: &str, handle: &str) -> Self {
        let source = json!({ "driver": driver, "volumeHandle": handle });
        Self::new(class, capacity).set("csi", source)
    }

    /// A folder that any node has.
    pub fn host_path(class: &str, capacity: &str) -> Self {
        Self::new(class, capacity).set("hostPath", json!({ "path": "/tmp/never-made" }))
    }

    fn new(class: &str, capacity: &str) -> Self {
        let this = Self { labels: Map::new(), spec: Map::new() };
        this.set("storageClassName", json!(class))
            .set("capacity", json!({ "storage": capacity }))
            .set("persistentVolumeReclaimPolicy", json!("Retain"))
            .modes(&["ReadWriteOnce"])
    }

    /// Sets a field of the spec.
    #[must_use]
    pub fn set(mut self, field: &str, value: Value) -> Self {
        self.spec.insert(field.into(), value);
        self
    }

    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.into(), json!(value));
        self
    }

    #[must_use]
    pub fn modes(self, modes: &[&str]) -> Self {
        self.set("accessModes", json!(modes))
    }

    #[must_use]
    pub fn on_nodes(self, names: &[&str]) -> Self {
        self.set("nodeAffinity", affinity(HOSTNAME, names))
    }

    #[must_use]
    pub fn in_zones(self, zones: &[&str]) -> Self {
        self.set("nodeAffinity", affinity(ZONE, zones))
    }

    /// No other claim may have it.
    #[must_use]
    pub fn reserved_for(self, namespace: &str, claim: &str) -> Self {
        let claim = json!({
            "apiVersion": "v1", "kind": CLAIM_KIND, "namespace": namespace, "name": claim,
        });
        self.set("claimRef", claim)
    }

    pub async fn create(&self, client: &Client, name: &str) -> Result<PersistentVolume> {
        let metadata = json!({ "name": name, "labels": self.labels });
        let object = json!({ "metadata": metadata, "spec": self.spec });
        create(&Api::all(client.clone()), "PersistentVolume", name, object).await
    }
}

/// A node affinity of volumes: the label must have one of these values.
pub fn affinity(key: &str, values: &[&str]) -> Value {
    let expression = json!({ "key": key, "operator": "In", "values": values });
    json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } })
}

/// A claim to be.
#[derive(Debug, Clone)]
pub struct ClaimTemplate {
    spec: Map<String, Value>,
}

impl ClaimTemplate {
    pub fn new(class: &str, request: &str) -> Self {
        let this = Self { spec: Map::new() };
        this.set("storageClassName", json!(class))
            .set("resources", json!({ "requests": { "storage": request } }))
            .modes(&["ReadWriteOnce"])
    }

    /// Sets a field of the spec.
    #[must_use]
    pub fn set(mut self, field: &str, value: Value) -> Self {
        self.spec.insert(field.into(), value);
        self
    }

    #[must_use]
    pub fn modes(self, modes: &[&str]) -> Self {
        self.set("accessModes", json!(modes))
    }

    /// As StatefulSets and ephemeral volumes describe the claims that they make.
    pub fn spec(&self) -> Value {
        json!(self.spec)
    }

    pub async fn create(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<PersistentVolumeClaim> {
        let metadata = json!({ "namespace": namespace, "name": name });
        let object = json!({ "metadata": metadata, "spec": self.spec });
        create(&Api::namespaced(client.clone(), namespace), CLAIM_KIND, name, object).await
    }
}

/// A StorageClass to be, whose claims wait for their first Pod unless it says otherwise.
#[derive(Debug, Clone)]
pub struct ClassTemplate {
    fields: Map<String, Value>,
}

impl ClassTemplate {
    pub fn of(provisioner: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("provisioner".into(), json!(provisioner));
        fields.insert("volumeBindingMode".into(), json!("WaitForFirstConsumer"));
        Self { fields }
    }

    /// A class of volumes that people made.
    pub fn made_by_hand() -> Self {
        Self::of(NO_PROVISIONER)
    }

    /// Its claims are bound at once.
    #[must_use]
    pub fn immediate(mut self) -> Self {
        self.fields.insert("volumeBindingMode".into(), json!("Immediate"));
        self
    }

    #[must_use]
    pub fn parameter(mut self, key: &str, value: &str) -> Self {
        let parameters = self.fields.entry("parameters").or_insert_with(|| json!({}));
        parameters[key] = json!(value);
        self
    }

    #[must_use]
    pub fn allowed_zones(mut self, zones: &[&str]) -> Self {
        let expression = json!({ "key": ZONE, "values": zones });
        let topologies = json!([{ "matchLabelExpressions": [expression] }]);
        self.fields.insert("allowedTopologies".into(), topologies);
        self
    }

    pub async fn create(&self, client: &Client, name: &str) -> Result<StorageClass> {
        let mut object = json!(self.fields);
        object["metadata"] = json!({ "name": name });
        create(&Api::all(client.clone()), "StorageClass", name, object).await
    }
}

/// Says how many volumes of a driver a node takes.
pub async fn create_csi_node(client: &Client, node: &str, driver: &str, count: u32) -> Result<()> {
    let object = json!({
        "metadata": { "name": node },
        "spec": { "drivers": [csi_driver(node, driver, count)] },
    });
    create::<CSINode>(&Api::all(client.clone()), "CSINode", node, object).await.map(drop)
}

/// Says so anew.
pub async fn set_csi_limit(client: &Client, node: &str, driver: &str, count: u32) -> Result<()> {
    let nodes: Api<CSINode> = Api::all(client.clone());
    let patch = Patch::Merge(json!({ "spec": { "drivers": [csi_driver(node, driver, count)] } }));
    let patched = nodes.patch(node, &PatchParams::default(), &patch).await;
    patched.map(drop).doing(format!("changing the limit of CSINode {node}"))
}

fn csi_driver(node: &str, driver: &str, count: u32) -> Value {
    json!({ "name": driver, "nodeID": node, "allocatable": { "count": count } })
}

/// Says that a volume is attached to a node, as the attacher of a driver does.
pub async fn attach(
    client: &Client,
    name: &str,
    attacher: &str,
    node: &str,
    volume: &str,
) -> Result<()> {
    let source = json!({ "persistentVolumeName": volume });
    let spec = json!({ "attacher": attacher, "nodeName": node, "source": source });
    let object = json!({ "metadata": { "name": name }, "spec": spec });
    let attachments: Api<VolumeAttachment> = Api::all(client.clone());
    create(&attachments, "VolumeAttachment", name, object).await.map(drop)
}

async fn create<K>(api: &Api<K>, kind: &str, name: &str, object: Value) -> Result<K>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let doing = format!("creating {kind} {name}");
    let object = serde_json::from_value(object).doing(doing.clone())?;
    api.create(&PostParams::default(), &object).await.doing(doing)
}
