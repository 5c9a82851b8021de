use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::InTreeDisk;

/// A volume of a Pod that concerns where it can go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PodVolume {
    /// `persistentVolumeClaim`, by the name of the claim.
    Claim(Arc<str>),
    /// `ephemeral`, by the name of the claim that is made for it: `<pod>-<volume>`.
    Ephemeral(Arc<str>),
    Disk(InlineDisk),
}

impl PodVolume {
    /// The claim behind it, if any.
    pub fn claim(&self) -> Option<&Arc<str>> {
        match self {
            Self::Claim(name) | Self::Ephemeral(name) => Some(name),
            Self::Disk(_) => None,
        }
    }
}

/// A disk that the Pod itself names, with what the rules read of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InlineDisk {
    GcePersistentDisk { pd_name: Arc<str>, is_read_only: bool },
    AwsElasticBlockStore { volume_id: Arc<str> },
    Iscsi { iqn: Arc<str>, is_read_only: bool },
    Rbd { monitors: Vec<Arc<str>>, pool: Arc<str>, image: Arc<str>, is_read_only: bool },
    AzureDisk { disk_uri: Arc<str>, kind: Option<Arc<str>> },
    Cinder { volume_id: Arc<str> },
    Portworx { volume_id: Arc<str> },
}

impl InlineDisk {
    /// As what a CSI driver may attach it.
    pub fn in_tree(&self) -> Option<InTreeDisk> {
        Some(match self.clone() {
            Self::GcePersistentDisk { pd_name, .. } => InTreeDisk::GcePersistentDisk { pd_name },
            Self::AwsElasticBlockStore { volume_id } => {
                InTreeDisk::AwsElasticBlockStore { volume_id }
            }
            Self::AzureDisk { disk_uri, kind } => InTreeDisk::AzureDisk { disk_uri, kind },
            Self::Cinder { volume_id } => InTreeDisk::Cinder { volume_id },
            Self::Portworx { volume_id } => InTreeDisk::Portworx { volume_id },
            Self::Iscsi { .. } | Self::Rbd { .. } => return None,
        })
    }
}
