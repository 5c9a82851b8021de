use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DeviceSelector;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceClass {
    pub name: Arc<str>,
    pub created_at_unix_s: i64,
    pub selectors: Vec<DeviceSelector>,
    /// `spec.config`, each as JSON: an allocation repeats it.
    pub configs: Vec<Arc<str>>,
    /// `spec.extendedResourceName`: the extended resource that its devices serve.
    pub extended_resource: Option<Arc<str>>,
}
