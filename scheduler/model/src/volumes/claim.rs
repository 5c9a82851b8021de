use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AccessModes, LabelSelector, ObjectKey, PodUid, Quantity, VolumeMode};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolumeClaim {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// The annotation `volume.beta.kubernetes.io/storage-class` if present, else `spec.storageClassName`; empty without
    /// either.
    pub class: Arc<str>,
    /// `spec.resources.requests.storage`; zero when there is none.
    pub request: Quantity,
    /// `spec.volumeName`, if it is not empty.
    pub volume_name: Option<Arc<str>>,
    /// The annotation `pv.kubernetes.io/bind-completed` is present, with any value.
    pub is_bind_completed: bool,
    /// `status.phase` is `Lost`.
    pub is_lost: bool,
    pub is_deleting: bool,
    /// The annotation `volume.kubernetes.io/selected-node`. It may be present and empty: then no Node is the one.
    pub selected_node: Option<Arc<str>>,
    pub access_modes: AccessModes,
    pub volume_mode: VolumeMode,
    /// `spec.volumeAttributesClassName`; empty when there is none.
    pub attributes_class: Arc<str>,
    /// `None`: any PersistentVolume.
    pub selector: Option<LabelSelector>,
    /// The UID of its controller: an ephemeral volume is its Pod's own only if this is the Pod.
    pub controller: Option<PodUid>,
}

impl PersistentVolumeClaim {
    /// A claim that asks for nothing and is not bound.
    pub fn new(key: ObjectKey) -> Self {
        Self {
            key,
            uid: Arc::default(),
            resource_version: Arc::default(),
            class: Arc::default(),
            request: Quantity::default(),
            volume_name: None,
            is_bind_completed: false,
            is_lost: false,
            is_deleting: false,
            selected_node: None,
            access_modes: AccessModes::default(),
            volume_mode: VolumeMode::default(),
            attributes_class: Arc::default(),
            selector: None,
            controller: None,
        }
    }

    /// Whether it says the same as another version of it.
    pub fn is_but_newer_than(&self, other: &Self) -> bool {
        let resource_version = other.resource_version.clone();
        Self { resource_version, ..self.clone() } == *other
    }

    /// The PersistentVolume that it is bound to. Neither its phase nor what the PersistentVolume says matters, as in
    /// kube-scheduler.
    pub fn bound_to(&self) -> Option<&Arc<str>> {
        self.volume_name.as_ref().filter(|_| self.is_bind_completed)
    }
}
