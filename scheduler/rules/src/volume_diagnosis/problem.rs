//! What can be wrong with one claim.

use std::sync::Arc;

use model::{NodeName, ObjectKey, Quantity};
use serde::{Deserialize, Serialize};

use super::volumes::VolumesLookedAt;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimProblem {
    NotFound,
    /// The controller of ephemeral volumes has not made it yet.
    NotMade,
    NotOwned,
    Lost {
        volume: Arc<str>,
    },
    Deleted,
    /// It is bound to a PersistentVolume that does not exist.
    VolumeNotFound {
        volume: Arc<str>,
    },
    ClassNotFound,
    /// To be bound at once, by others than the scheduler.
    NotBound {
        /// That it names already.
        volume: Option<Arc<str>>,
        /// Of its class, which makes volumes.
        provisioner: Option<Arc<str>>,
        /// Of a class that makes none.
        volumes: Option<VolumesLookedAt>,
    },
    /// Its volume is made for one Node, which is not one of those that reject the Pod for that.
    OtherNode {
        node: NodeName,
        /// By the annotation; otherwise it is about to be.
        is_written: bool,
        is_known: bool,
    },
    NoVolume(VolumesLookedAt),
    /// The class makes volumes elsewhere.
    Topology {
        allowed: String,
    },
    NotEnoughStorage {
        provisioner: Arc<str>,
        largest: Option<PublishedCapacity>,
    },
    /// Each claim alone has room.
    NotEnoughStorageTogether {
        provisioner: Arc<str>,
    },
    NodeAffinity {
        volume: Arc<str>,
        wants: String,
    },
    Zone {
        volume: Arc<str>,
        label: Arc<str>,
        value: Arc<str>,
    },
    AttachLimit {
        driver: Arc<str>,
        nodes: usize,
        /// One of them, with its figures.
        node: NodeName,
        limit: i64,
        used: i64,
        /// How many volumes the Pod brings there.
        brings: i64,
    },
    /// It is for one Pod only.
    InUse {
        pod: ObjectKey,
        node: Option<NodeName>,
    },
}

/// The largest volume of a class that a driver says it can make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedCapacity {
    pub size: Quantity,
    /// A Node on which it can be. `None`: there is none.
    pub node: Option<NodeName>,
    /// It is enough, but not where the Pod was rejected for it.
    pub is_enough: bool,
}

impl ClaimProblem {
    /// One word.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::NotMade => "NotMade",
            Self::NotOwned => "NotOwned",
            Self::Lost { .. } => "Lost",
            Self::Deleted => "Deleted",
            Self::VolumeNotFound { .. } => "VolumeNotFound",
            Self::ClassNotFound => "ClassNotFound",
            Self::NotBound { .. } => "NotBound",
            Self::OtherNode { .. } => "OtherNode",
            Self::NoVolume(_) => "NoVolume",
            Self::Topology { .. } => "Topology",
            Self::NotEnoughStorage { .. } => "NotEnoughStorage",
            Self::NotEnoughStorageTogether { .. } => "NotEnoughStorageTogether",
            Self::NodeAffinity { .. } => "NodeAffinity",
            Self::Zone { .. } => "Zone",
            Self::AttachLimit { .. } => "AttachLimit",
            Self::InUse { .. } => "InUse",
        }
    }

    /// The PersistentVolumes that were looked at.
    pub const fn volumes(&self) -> Option<&VolumesLookedAt> {
        match self {
            Self::NoVolume(volumes) | Self::NotBound { volumes: Some(volumes), .. } => {
                Some(volumes)
            }
            _ => None,
        }
    }

    /// What it names besides figures: a Pod is reported anew when this changes.
    pub(super) fn names(&self) -> String {
        match self {
            Self::Lost { volume }
            | Self::VolumeNotFound { volume }
            | Self::NotBound { volume: Some(volume), .. }
            | Self::NodeAffinity { volume, .. }
            | Self::Zone { volume, .. } => volume.to_string(),
            Self::OtherNode { node, is_known, .. } => format!("{node} {is_known}"),
            Self::InUse { pod, .. } => pod.to_string(),
            Self::AttachLimit { driver, .. } => driver.to_string(),
            Self::NotBound { provisioner: Some(provisioner), .. } => provisioner.to_string(),
            _ => {
                let lacks = self.volumes().into_iter().flat_map(|it| &it.reasons);
                lacks.map(|it| it.lack.label()).collect::<Vec<_>>().join(" ")
            }
        }
    }
}
