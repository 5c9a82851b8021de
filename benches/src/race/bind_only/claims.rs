//! What is written about the claims of Pods before their Bindings: the same as the schedulers write.

use std::collections::{BTreeMap, HashMap};

use e2e::Result;
use e2e::objects::volumes::SELECTED_NODE;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::wire::Wire;
use super::{Item, List, Metadata, list};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// A claim that is not bound yet: what makes others bind it, and on which Node its volume is then, if only one has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimWrite {
    pub claim: String,
    pub kind: WriteKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WriteKind {
    /// The claim gets this volume, which is on this Node.
    Volume { path: String, body: Value, node: String },
    /// A volume is made on the Node of the Pod.
    SelectNode { path: String, uid: String, version: String },
}

impl ClaimWrite {
    /// Where to, and what.
    pub fn patch(&self, node: &str) -> (&str, Value) {
        match &self.kind {
            WriteKind::Volume { path, body, .. } => (path, body.clone()),
            WriteKind::SelectNode { path, uid, version } => {
                let annotations = json!({SELECTED_NODE: node});
                let metadata =
                    json!({"uid": uid, "resourceVersion": version, "annotations": annotations});
                (path, json!({"metadata": metadata}))
            }
        }
    }
}

/// The claims and volumes of the cluster.
#[derive(Debug)]
pub struct Unbound {
    claims: HashMap<String, Claim>,
    free: HashMap<String, Vec<Volume>>,
    /// Watches go on from here.
    pub claims_version: String,
    pub volumes_version: String,
}

impl Unbound {
    pub async fn read(wire: &Wire) -> Result<Self> {
        let claims: List<Claim> = list(wire, "/api/v1/persistentvolumeclaims").await?;
        let volumes: List<Volume> = list(wire, "/api/v1/persistentvolumes").await?;
        let mut free: HashMap<String, Vec<Volume>> = HashMap::new();
        for volume in volumes.items.into_iter().filter(|it| it.spec.claim_ref.is_none()) {
            free.entry(volume.spec.storage_class_name.clone()).or_default().push(volume);
        }
        let unbound = claims.items.into_iter().filter(|claim| !claim.is_bound());
        Ok(Self {
            claims: unbound.map(|claim| (claim.key(), claim)).collect(),
            free,
            claims_version: claims.metadata.resource_version,
            volumes_version: volumes.metadata.resource_version,
        })
    }

    /// What to write for the claim of a Pod, if it has one that is not bound: a free volume of its class is taken, and
    /// one is made if there is none.
    pub fn write_for(&mut self, pod: &Item) -> Option<ClaimWrite> {
        let name = pod.claim()?;
        let claim = self.claims.remove(&format!("{}/{name}", pod.metadata.namespace))?;
        let volume = self.free.get_mut(&claim.spec.storage_class_name).and_then(Vec::pop);
        let kind = volume.map_or_else(|| claim.select_node(), |volume| volume.bind(&claim));
        Some(ClaimWrite { claim: claim.key(), kind })
    }
}

#[derive(Debug, Deserialize)]
pub struct Claim {
    pub metadata: Metadata,
    #[serde(default)]
    spec: ClaimSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    storage_class_name: String,
    volume_name: String,
}

impl Claim {
    pub fn key(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    pub fn is_bound(&self) -> bool {
        let is_complete = self.metadata.annotations.contains_key(BIND_COMPLETED);
        is_complete && !self.spec.volume_name.is_empty()
    }

    fn select_node(&self) -> WriteKind {
        let Metadata { namespace, name, uid, resource_version, .. } = &self.metadata;
        WriteKind::SelectNode {
            path: format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"),
            uid: uid.clone(),
            version: resource_version.clone(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Volume {
    metadata: Metadata,
    spec: VolumeSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeSpec {
    #[serde(default)]
    storage_class_name: String,
    claim_ref: Option<Value>,
    #[serde(default)]
    node_affinity: Value,
}

impl Volume {
    fn bind(&self, claim: &Claim) -> WriteKind {
        let Metadata { name, uid, resource_version, .. } = &self.metadata;
        let metadata = json!({
            "uid": uid, "resourceVersion": resource_version,
            "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
        });
        let claim_ref = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": claim.metadata.namespace, "name": claim.metadata.name,
            "uid": claim.metadata.uid,
        });
        let node = "/required/nodeSelectorTerms/0/matchExpressions/0/values/0";
        let node = self.spec.node_affinity.pointer(node).and_then(Value::as_str);
        WriteKind::Volume {
            path: format!("/api/v1/persistentvolumes/{name}"),
            body: json!({"metadata": metadata, "spec": {"claimRef": claim_ref}}),
            node: node.unwrap_or_default().to_owned(),
        }
    }
}

/// The annotations of an object.
pub type Annotations = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(volume: &str) -> Claim {
        let metadata = json!({"namespace": "race", "name": "data-0", "uid": "u", "resourceVersion": "7",
            "annotations": {BIND_COMPLETED: "yes"}});
        let spec = json!({"storageClassName": "c", "volumeName": volume});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    #[test]
    fn a_claim_is_bound_once_it_names_its_volume() {
        assert!(claim("pv").is_bound() && !claim("").is_bound());
    }

    #[test]
    fn what_is_written_holds_for_the_version_that_was_read() {
        let volume: Volume = serde_json::from_value(json!({
            "metadata": {"name": "pv", "uid": "uv", "resourceVersion": "9"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "host", "operator": "In", "values": ["node-3"]}]}]}}},
        }))
        .unwrap();
        let write = ClaimWrite { claim: claim("").key(), kind: volume.bind(&claim("")) };
        let (path, body) = write.patch("any");
        assert_eq!(path, "/api/v1/persistentvolumes/pv");
        assert_eq!(body["metadata"]["resourceVersion"], "9");
        assert_eq!(body["spec"]["claimRef"]["uid"], "u");
        assert!(matches!(write.kind, WriteKind::Volume { node, .. } if node == "node-3"));
        let select = ClaimWrite { claim: String::new(), kind: claim("").select_node() };
        let (path, body) = select.patch("node-1");
        assert_eq!(path, "/api/v1/namespaces/race/persistentvolumeclaims/data-0");
        assert_eq!(body["metadata"]["annotations"][SELECTED_NODE], "node-1");
    }
}
