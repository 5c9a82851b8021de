//! Dynamic Resource Allocation: devices, what Pods ask of them, and who has which. The kinds of `resource.k8s.io/v1`, as
//! far as scheduling reads them.

mod allocation;
mod claim;
mod class;
mod device;
mod pod_claim;
mod request;
mod slice;

pub use allocation::{AllocatedDevice, Allocation, ConfigSource, DeviceConfig};
pub use claim::{ClaimUser, ResourceClaim};
pub use class::DeviceClass;
pub use device::{
    Attribute, CapacityPolicy, CapacityValues, CounterUse, Device, DeviceCapacity, DeviceId,
    DeviceTaint, DeviceTaintEffect, DeviceToleration, DeviceType, SelectorVerdict,
};
pub use pod_claim::{PodClaim, PodClaimSource, TemplateClaim};
pub use request::{
    ClaimSpec, Constraint, DeviceCount, DeviceRequest, DeviceSelector, RequestAlternatives,
    RequestConfig, SubRequest,
};
pub use slice::{CounterSet, DevicePlace, ResourceSlice, SelectedNodes};
