use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DeviceId, DeviceToleration, SelectedNodes};
use crate::Quantity;

/// `status.allocation` of a ResourceClaim: which devices it has, and from where they can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    pub devices: Vec<AllocatedDevice>,
    pub configs: Vec<DeviceConfig>,
    /// `None`: every Node.
    pub nodes: Option<Arc<SelectedNodes>>,
    /// `allocationTimestamp`.
    pub allocated_at_unix_s: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// `request`, or `request/alternative`.
    pub request: Arc<str>,
    pub id: DeviceId,
    pub admin_access: bool,
    pub tolerations: Vec<DeviceToleration>,
    pub binding_conditions: Vec<Arc<str>>,
    pub binding_failure_conditions: Vec<Arc<str>>,
    /// Of a device that several claims may have: which part this is.
    pub share_id: Option<Arc<str>>,
    /// By names of capacities, all of such a device.
    pub consumed_capacity: BTreeMap<Arc<str>, Quantity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceConfig {
    pub source: ConfigSource,
    pub requests: Vec<Arc<str>>,
    /// `opaque`, as JSON.
    pub opaque: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfigSource {
    FromClass,
    FromClaim,
}
