use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::NodeName;

/// A VolumeAttachment. It counts until the object is gone, whatever its status says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAttachment {
    pub name: Arc<str>,
    pub node: NodeName,
    /// `spec.attacher`: the CSI driver.
    pub attacher: Arc<str>,
    /// `spec.source.persistentVolumeName`. `None`: an inline volume, which does not count.
    pub volume_name: Option<Arc<str>>,
}
