//! What is wrong with the claims of a Pod as a whole, in kube-scheduler's words.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::ObjectKey;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VolumeProblem {
    ClaimNotFound {
        claim: ObjectKey,
        /// NodeVolumeLimits says it in longer words.
        is_looked_up: bool,
    },
    /// The controller of ephemeral volumes has not made it yet.
    ClaimNotMade {
        claim: ObjectKey,
    },
    ClaimLost {
        claim: ObjectKey,
        volume: Arc<str>,
    },
    ClaimDeleted {
        claim: ObjectKey,
    },
    /// A claim of the name of the Pod's ephemeral volume that belongs to something else.
    ClaimNotOwned {
        claim: ObjectKey,
        pod: ObjectKey,
    },
    VolumeNotFound {
        volume: Arc<str>,
    },
    ClassNotFound {
        class: Arc<str>,
    },
    ClassWithoutBindingMode {
        class: Arc<str>,
    },
}

impl VolumeProblem {
    /// What would have to change.
    pub fn wakes_on(&self) -> String {
        match self {
            Self::ClaimNotFound { claim, .. } | Self::ClaimNotMade { claim } => {
                format!("the PersistentVolumeClaim {claim} is created")
            }
            Self::ClaimLost { claim, .. }
            | Self::ClaimDeleted { claim }
            | Self::ClaimNotOwned { claim, .. } => {
                format!("the PersistentVolumeClaim {claim} is replaced")
            }
            Self::VolumeNotFound { volume } => {
                format!("the PersistentVolume {volume} is created")
            }
            Self::ClassNotFound { class } => format!("the StorageClass {class} is created"),
            Self::ClassWithoutBindingMode { class } => {
                format!("the StorageClass {class} gets a volumeBindingMode")
            }
        }
    }
}

impl fmt::Display for VolumeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimNotFound { claim, is_looked_up } => {
                if *is_looked_up {
                    write!(f, "looking up PVC {claim}: ")?;
                }
                write!(f, "persistentvolumeclaim {:?} not found", claim.name)
            }
            Self::ClaimNotMade { claim } => write!(
                f,
                "waiting for ephemeral volume controller to create the persistentvolumeclaim {:?}",
                claim.name
            ),
            Self::ClaimLost { claim, volume } => write!(
                f,
                "persistentvolumeclaim {:?} bound to non-existent persistentvolume {volume:?}",
                claim.name
            ),
            Self::ClaimDeleted { claim } => {
                write!(f, "persistentvolumeclaim {:?} is being deleted", claim.name)
            }
            Self::ClaimNotOwned { claim, pod } => {
                write!(f, "PVC {claim} was not created for pod {pod} (pod is not owner)")
            }
            Self::VolumeNotFound { volume } => write!(f, "persistentvolume {volume:?} not found"),
            Self::ClassNotFound { class } => {
                write!(f, "storageclass.storage.k8s.io {class:?} not found")
            }
            Self::ClassWithoutBindingMode { class } => {
                write!(f, "VolumeBindingMode not set for StorageClass {class:?}")
            }
        }
    }
}
