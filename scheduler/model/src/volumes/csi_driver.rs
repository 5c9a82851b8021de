use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiDriver {
    pub name: Arc<str>,
    /// `spec.storageCapacity`: it publishes CSIStorageCapacity objects, and these are to be asked.
    pub has_storage_capacity: bool,
}
