use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DeviceToleration;
use crate::Quantity;

/// `spec.devices` of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClaimSpec {
    pub requests: Vec<DeviceRequest>,
    pub constraints: Vec<Constraint>,
    pub configs: Vec<RequestConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceRequest {
    pub name: Arc<str>,
    pub alternatives: RequestAlternatives,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RequestAlternatives {
    /// `exactly`. Its name is that of the request.
    Exactly(SubRequest),
    /// `firstAvailable`: the first that can be met.
    FirstAvailable(Vec<SubRequest>),
    /// Neither, or one of a later version.
    Unknown,
}

/// What is asked for: a request, or one of its alternatives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubRequest {
    pub name: Arc<str>,
    pub class: Arc<str>,
    pub selectors: Vec<DeviceSelector>,
    pub count: DeviceCount,
    pub admin_access: bool,
    pub tolerations: Vec<DeviceToleration>,
    /// `capacity.requests`.
    pub capacity: BTreeMap<Arc<str>, Quantity>,
}

/// `allocationMode` with `count`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeviceCount {
    Exact(i64),
    All,
    /// A mode of a later version.
    Unknown(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeviceSelector {
    /// `cel.expression`.
    Cel(Arc<str>),
    /// A sort of a later version.
    Unknown,
}

/// Between the devices of a claim. `requests`: of which, all if empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Constraint {
    /// `matchAttribute`: they have the same value.
    Match { requests: Vec<Arc<str>>, attribute: Arc<str> },
    /// `distinctAttribute`: no two have the same.
    Distinct { requests: Vec<Arc<str>>, attribute: Arc<str> },
    /// A sort of a later version.
    Unknown,
}

/// Parameters for the driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestConfig {
    /// For which requests, all if empty.
    pub requests: Vec<Arc<str>>,
    /// `opaque`, as JSON.
    pub opaque: Arc<str>,
}
