//! What of volumes and the objects behind them the workloads use. A field that is not here is refused.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::fragment::{Metadata, NodeTerms};

/// An object of any of these kinds.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum ObjectFragment {
    PersistentVolume {
        #[serde(rename = "apiVersion")]
        _api_version: IgnoredAny,
        metadata: Metadata,
        spec: VolumeSpec,
        #[serde(default)]
        status: VolumeStatus,
    },
    PersistentVolumeClaim {
        #[serde(rename = "apiVersion")]
        _api_version: IgnoredAny,
        metadata: Metadata,
        spec: ClaimSpec,
    },
    StorageClass {
        #[serde(rename = "apiVersion")]
        _api_version: IgnoredAny,
        metadata: Metadata,
        provisioner: String,
        #[serde(rename = "volumeBindingMode")]
        binding_mode: Option<String>,
    },
    #[serde(rename = "CSINode")]
    CsiNode {
        #[serde(rename = "apiVersion")]
        _api_version: IgnoredAny,
        metadata: Metadata,
        spec: CsiNodeSpec,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeSpec {
    pub storage_class_name: String,
    pub capacity: Storage,
    pub access_modes: Vec<String>,
    #[serde(rename = "persistentVolumeReclaimPolicy")]
    _reclaim_policy: IgnoredAny,
    pub csi: Option<Csi>,
    #[serde(rename = "local")]
    _local: Option<IgnoredAny>,
    pub claim_ref: Option<ClaimRefFragment>,
    pub node_affinity: Option<VolumeAffinity>,
}

/// An amount of it, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    pub storage: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Csi {
    pub driver: String,
    pub volume_handle: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRefFragment {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeAffinity {
    pub required: NodeTerms,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeStatus {
    pub phase: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClaimSpec {
    pub storage_class_name: String,
    pub access_modes: Vec<String>,
    pub resources: ClaimResources,
    pub volume_name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimResources {
    pub requests: Storage,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsiNodeSpec {
    pub drivers: Vec<Driver>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    pub name: String,
    #[serde(rename = "nodeID")]
    _node_id: IgnoredAny,
    pub allocatable: Option<Allocatable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocatable {
    pub count: Option<i32>,
}

/// A volume of a Pod: a claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PodVolumeFragment {
    #[serde(rename = "name")]
    _name: IgnoredAny,
    pub persistent_volume_claim: ClaimSource,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClaimSource {
    pub claim_name: String,
}
