//! The structured allocator of Dynamic Resource Allocation: which devices the claims of a Pod get on one Node.
//!
//! ```text
//! DevicePools ──▶ NodePool (what the Node can reach) ──▶ Ask (a request, checked) ──▶ Search ──▶ Allocation
//!  every slice                                                                      │
//! TakenDevices ─────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Depth first, claims, requests and devices in order; the first full solution wins, as in kube-scheduler, so that
//! both choose the same devices. What the search has chosen so far is one list, and every question about it walks
//! that list: nothing has to be undone but its last entry. A solution that exists is found unless the
//! [limit of steps](AllocatorInput::step_limit) comes first, which is an answer of its own.
//!
//! Where kube-scheduler v1.36.4 gives devices out wrongly or keeps them back for nothing, this does not:
//!
//! - `distinctAttribute` holds between every two devices, not one per request ([`constraints`]);
//! - `All` fails where a shared device has too little left, instead of leaving the device out ([`ask`]);
//! - admin access neither needs nor takes counters or capacity, nor the device from other claims ([`chosen`]);
//! - a counter that is overdrawn stops the devices that draw from it, not all of its pool ([`counters`]);
//! - a shared device is charged its counters once, also if it declares no capacity ([`counters`]);
//! - a device with shares that can no longer be shared is in use ([`chosen`]);
//! - a pool whose slices disagree on their number counts as the largest says, in whatever order they came ([`node_pools`]);
//! - a configuration of a claim that names several requests is in the allocation once ([`allocation`]).

mod allocation;
mod allocator;
mod ask;
mod capacity;
mod chosen;
mod constraints;
mod counters;
mod diagnosis;
mod failure;
mod node_pools;
mod pools;
mod score;
mod search;
mod selectors;
mod taken;

#[cfg(test)]
mod tests;

pub use allocation::name_shares;
pub use allocator::{AllocatorInput, DEVICES_PER_CLAIM_MAX, DeviceClasses, STEPS_MAX, allocate};
pub use diagnosis::{DeviceDiagnosis, RequestDiagnosis, diagnose_devices};
pub use failure::{AllocationFailure, FatalDeviceError};
pub use pools::{DevicePools, PoolId};
pub use score::{allocation_score, possible_scores};
pub use selectors::Selectors;
pub use taken::{DeviceUse, TakenChange, TakenDevices};
