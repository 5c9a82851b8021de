use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, ObjectKey, Quantity};

/// A CSIStorageCapacity: what a driver can still make of a class, on some Nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiStorageCapacity {
    pub key: ObjectKey,
    /// `storageClassName`.
    pub class: Arc<str>,
    /// `nodeTopology`, by the labels of Nodes. `None`: no Node.
    pub node_topology: Option<LabelSelector>,
    /// The largest volume: `maximumVolumeSize`, else `capacity`. `None`: no volume.
    pub limit: Option<Quantity>,
    /// `capacity`: what all volumes together may take. `None`: not known.
    pub capacity: Option<Quantity>,
}
