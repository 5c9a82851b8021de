use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Allocation, ClaimSpec, DeviceId};
use crate::{ObjectKey, PodUid};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceClaim {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    pub spec: Arc<ClaimSpec>,
    pub is_deleting: bool,
    /// It has the finalizer `resource.kubernetes.io/delete-protection`.
    pub has_finalizer: bool,
    /// The UID of its controller: a claim of a template is its Pod's own only if this is the Pod.
    pub controller: Option<PodUid>,
    /// The annotation `resource.kubernetes.io/extended-resource-claim`: it stands for extended resources of its Pod.
    pub is_for_extended_resources: bool,
    pub allocation: Option<Arc<Allocation>>,
    /// `status.reservedFor`.
    pub reserved_for: Vec<ClaimUser>,
    /// `status.devices`: conditions of each that are True. Without `shareID`.
    #[serde(with = "crate::pairs")]
    pub true_conditions: BTreeMap<DeviceId, Vec<Arc<str>>>,
}

/// Who may use a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClaimUser {
    /// It is a Pod. Of other sorts nothing is known here.
    pub is_pod: bool,
    pub name: Arc<str>,
    pub uid: Arc<str>,
}

impl ResourceClaim {
    pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
    /// How many entries `status.reservedFor` takes.
    pub const USERS_MAX: usize = 256;

    /// A claim that asks for nothing and has nothing.
    pub fn new(key: ObjectKey) -> Self {
        Self {
            key,
            uid: Arc::default(),
            resource_version: Arc::default(),
            spec: Arc::default(),
            is_deleting: false,
            has_finalizer: false,
            controller: None,
            is_for_extended_resources: false,
            allocation: None,
            reserved_for: Vec::new(),
            true_conditions: BTreeMap::new(),
        }
    }

    /// Whether it says the same as another version of it.
    pub fn is_but_newer_than(&self, other: &Self) -> bool {
        let resource_version = other.resource_version.clone();
        Self { resource_version, ..self.clone() } == *other
    }

    /// A device of it that will not be ready, and the condition that says so.
    pub fn failed_device(&self) -> Option<(&DeviceId, &Arc<str>)> {
        let mut devices = self.allocation.iter().flat_map(|it| &it.devices);
        devices.find_map(|device| {
            let mut failures = device.binding_failure_conditions.iter();
            Some((&device.id, failures.find(|it| self.is_true(&device.id, it))?))
        })
    }

    /// Whether the conditions that its devices wait for are there.
    pub fn has_ready_devices(&self) -> bool {
        let mut devices = self.allocation.iter().flat_map(|it| &it.devices);
        devices.all(|device| {
            device.binding_conditions.iter().all(|condition| self.is_true(&device.id, condition))
        })
    }

    fn is_true(&self, device: &DeviceId, condition: &Arc<str>) -> bool {
        self.true_conditions.get(device).is_some_and(|all| all.contains(condition))
    }

    pub fn is_reserved_for(&self, pod: &PodUid) -> bool {
        self.reserved_for.iter().any(|user| *user.uid == *pod.as_str())
    }
}
