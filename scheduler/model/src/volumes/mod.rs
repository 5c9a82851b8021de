//! Volumes of Pods, and the objects behind them, as far as scheduling reads them.

mod access;
mod attachment;
mod bindings;
mod capacity;
mod claim;
mod class;
mod csi_driver;
mod csi_node;
mod in_tree;
mod in_tree_affinity;
mod persistent_volume;
mod pod_volume;

pub use access::{AccessMode, AccessModes, VolumeMode};
pub use attachment::VolumeAttachment;
pub use bindings::PodVolumeBindings;
pub use capacity::CsiStorageCapacity;
pub use claim::PersistentVolumeClaim;
pub use class::{BindingMode, StorageClass};
pub use csi_driver::CsiDriver;
pub use csi_node::CsiNode;
pub use in_tree::{InTreeDisk, InTreePlugin, TranslatedVolume, TranslationError};
pub use persistent_volume::{ClaimRef, PersistentVolume, VolumePhase, VolumeSource};
pub use pod_volume::{InlineDisk, PodVolume};
