//! What the state of a ResourceClaim says.

use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceRequestAllocationResult, ResourceClaim,
};

pub trait DeviceClaimState {
    fn allocation(&self) -> Option<&AllocationResult>;
    fn results(&self) -> &[DeviceRequestAllocationResult];
    /// `pool/device` of each device it has, in their order.
    fn devices(&self) -> Vec<String>;
    /// The UIDs of the Pods for which it is reserved.
    fn users(&self) -> Vec<&str>;

    fn is_allocated(&self) -> bool {
        self.allocation().is_some()
    }
}

impl DeviceClaimState for ResourceClaim {
    fn allocation(&self) -> Option<&AllocationResult> {
        self.status.as_ref()?.allocation.as_ref()
    }

    fn results(&self) -> &[DeviceRequestAllocationResult] {
        let devices = self.allocation().and_then(|it| it.devices.as_ref());
        devices.and_then(|it| it.results.as_deref()).unwrap_or_default()
    }

    fn devices(&self) -> Vec<String> {
        self.results().iter().map(|it| format!("{}/{}", it.pool, it.device)).collect()
    }

    fn users(&self) -> Vec<&str> {
        let users = self.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
        users.map(|user| user.uid.as_str()).collect()
    }
}
