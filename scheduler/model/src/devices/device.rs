use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DevicePlace;
use crate::Quantity;

/// What a device is known by in the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId {
    pub driver: Arc<str>,
    pub pool: Arc<str>,
    pub device: Arc<str>,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// What the expressions of selectors see of a device. Thousands of devices are alike in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceType {
    pub driver: Arc<str>,
    /// By names as they are written: `id`, which belongs to the driver, or `domain/id`.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// By names of the same form.
    pub capacity: BTreeMap<Arc<str>, DeviceCapacity>,
    /// Several claims may have it, each a part of its capacity.
    pub allow_multiple_allocations: bool,
}

/// What an expression says of a type of device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectorVerdict {
    Matches,
    DoesNotMatch,
    /// It cannot be evaluated, and why.
    Fails(Arc<str>),
}

/// A device of a ResourceSlice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    pub name: Arc<str>,
    #[serde(rename = "type")]
    pub device_type: Arc<DeviceType>,
    /// What it draws from the counters of its pool.
    pub consumes_counters: Vec<CounterUse>,
    /// Where it is, if the slice says so of each device.
    pub place: Option<DevicePlace>,
    pub taints: Vec<DeviceTaint>,
    /// A claim that has it belongs to one Node, wherever the device can be reached from.
    pub binds_to_node: bool,
    /// Conditions that must be True before its Pod is bound.
    pub binding_conditions: Vec<Arc<str>>,
    /// Conditions of which none may be True.
    pub binding_failure_conditions: Vec<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Attribute {
    Bool(bool),
    Int(i64),
    Text(Arc<str>),
    /// A semantic version, as it is written.
    Version(Arc<str>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceCapacity {
    pub value: Quantity,
    /// The value as it is written, which CEL expressions see.
    pub text: Arc<str>,
    /// How much a claim takes, if the device can be shared.
    pub policy: Option<CapacityPolicy>,
}

/// `requestPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CapacityPolicy {
    /// What a claim takes that does not say how much.
    pub default: Option<Quantity>,
    pub values: CapacityValues,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CapacityValues {
    #[default]
    Any,
    /// `validValues`, ascending.
    Listed(Vec<Quantity>),
    /// `validRange`.
    Range { min: Option<Quantity>, max: Option<Quantity>, step: Option<Quantity> },
}

/// What a device draws from a set of counters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CounterUse {
    pub counter_set: Arc<str>,
    pub counters: BTreeMap<Arc<str>, Quantity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeviceTaintEffect {
    /// `None`, or one that is not known: it keeps nothing away.
    Other,
    NoSchedule,
    NoExecute,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceTaint {
    pub key: Arc<str>,
    pub value: Arc<str>,
    pub effect: DeviceTaintEffect,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceToleration {
    /// Empty matches every key.
    pub key: Arc<str>,
    /// `Exists`, or else `Equal`.
    pub exists: bool,
    pub value: Arc<str>,
    /// `None` matches every effect.
    pub effect: Option<DeviceTaintEffect>,
    /// Copied into the allocation, for the eviction controller.
    pub toleration_seconds: Option<i64>,
}

impl DeviceTaint {
    /// Whether it keeps away what does not tolerate it.
    pub fn repels(&self) -> bool {
        self.effect != DeviceTaintEffect::Other
    }
}

impl DeviceToleration {
    pub fn tolerates(&self, taint: &DeviceTaint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = self.key.is_empty() || self.key == taint.key;
        effect && key && (self.exists || self.value == taint.value)
    }
}
