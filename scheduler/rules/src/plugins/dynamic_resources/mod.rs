//! DynamicResources: the ResourceClaims of the Pod have their devices, or can have them on the Node.

mod filter;
mod needs;
mod pre_filter;
mod problem;
mod reserve;
mod score;

pub use needs::{DeviceFit, DeviceNeeds};
pub(crate) use pre_filter::DeviceClaims;
pub use problem::DeviceProblem;
pub use reserve::{ClaimToReserve, find_pod_devices};

use super::Point::{Filter, PostFilter, PreBind, PreEnqueue, PreFilter, Reserve, Score};
use super::{Registration, reasons};

/// What kube-scheduler says of a Pod with claims none of which can give its devices back, in front of what it says of
/// preemption.
pub const PREEMPTION_WITH_CLAIMS: &str = "still not schedulable, preemption: ";

pub(super) const PLUGIN: Registration = Registration {
    default_weight: 2,
    pre_filter: Some(pre_filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    score: Some(score::score),
    ..Registration::optional(&[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind])
};

reasons! {
    DynamicResources:
    CANNOT_ALLOCATE_CLAIMS = unresolvable(
        "cannot allocate all claims",
        wakes_on: "devices that its claims ask for are published or free again",
    ),
    CLAIM_NOT_AVAILABLE = unresolvable(
        "resourceclaim not available on the node",
        wakes_on: "a node from which the devices of its claim can be used",
    ),
    INVALID_POOLS = unresolvable(
        "invalid resource pools were encountered",
        wakes_on: "the driver publishes its ResourceSlices anew",
    ),
}
