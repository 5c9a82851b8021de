use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    AccessModes, InTreeDisk, Labels, NodeSelector, ObjectKey, Quantity, RawNodeTerm,
    TranslatedVolume, TranslationError, VolumeMode,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolume {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// The annotation `volume.beta.kubernetes.io/storage-class` if present, else `spec.storageClassName`; empty without
    /// either.
    pub class: Arc<str>,
    /// `spec.capacity.storage`; zero when there is none.
    pub capacity: Quantity,
    pub phase: VolumePhase,
    pub is_deleting: bool,
    pub claim_ref: Option<ClaimRef>,
    pub access_modes: AccessModes,
    pub volume_mode: VolumeMode,
    /// `spec.volumeAttributesClassName`; empty when there is none.
    pub attributes_class: Arc<str>,
    /// `spec.nodeAffinity.required`. `None`: every Node.
    pub node_affinity: Option<NodeSelector>,
    pub labels: Labels,
    pub source: VolumeSource,
    /// The annotation `pv.kubernetes.io/bound-by-controller` is present: `claim_ref` was not written by an administrator.
    pub is_bound_by_controller: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumePhase {
    /// Also where none is written yet.
    #[default]
    Pending,
    Available,
    Bound,
    Released,
    Failed,
}

impl VolumePhase {
    pub fn parse(name: Option<&str>) -> Self {
        match name {
            Some("Available") => Self::Available,
            Some("Bound") => Self::Bound,
            Some("Released") => Self::Released,
            Some("Failed") => Self::Failed,
            _ => Self::Pending,
        }
    }
}

/// `spec.claimRef`: the claim that has it, or for which it is reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRef {
    pub key: ObjectKey,
    /// `None`: any claim of that name.
    pub uid: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeSource {
    Csi {
        driver: Arc<str>,
        handle: Arc<str>,
    },
    /// One of those that CSI drivers have taken over.
    InTree {
        disk: InTreeDisk,
        translated: Result<TranslatedVolume, TranslationError>,
    },
    Other,
}

impl VolumeSource {
    /// Translates the volume once: into what its CSI driver would call it, and where that can attach it. `terms` are
    /// those of `spec.nodeAffinity.required`.
    pub fn in_tree(disk: InTreeDisk, labels: &Labels, terms: Option<&[RawNodeTerm]>) -> Self {
        let translated = disk.translate_volume(labels, terms);
        Self::InTree { disk, translated }
    }
}

impl PersistentVolume {
    /// A volume that is made but not available yet, usable on every Node.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            uid: Arc::default(),
            resource_version: Arc::default(),
            class: Arc::default(),
            capacity: Quantity::default(),
            phase: VolumePhase::default(),
            is_deleting: false,
            claim_ref: None,
            access_modes: AccessModes::default(),
            volume_mode: VolumeMode::default(),
            attributes_class: Arc::default(),
            node_affinity: None,
            labels: Labels::new(),
            source: VolumeSource::Other,
            is_bound_by_controller: false,
        }
    }

    /// Whether it says the same as another version of it.
    pub fn is_but_newer_than(&self, other: &Self) -> bool {
        let resource_version = other.resource_version.clone();
        Self { resource_version, ..self.clone() } == *other
    }

    /// Whether its node affinity, as it stands, matches a Node with these labels.
    pub fn fits(&self, node_labels: &Labels) -> bool {
        fits(self.node_affinity.as_ref(), node_labels)
    }
}

impl TranslatedVolume {
    pub fn fits(&self, node_labels: &Labels) -> bool {
        fits(self.node_affinity.as_ref(), node_labels)
    }
}

fn fits(affinity: Option<&NodeSelector>, node_labels: &Labels) -> bool {
    affinity.is_none_or(|terms| terms.matches_labels(node_labels))
}
