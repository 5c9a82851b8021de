//! Why claims get no devices.

use std::fmt;
use std::sync::Arc;

use model::{DeviceId, NodeName, ObjectKey};

use super::PoolId;

/// Why the claims of a Pod get no devices on a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationFailure {
    /// There is no way to give all claims what they ask for. `diagnose_devices` says more.
    DoesNotFit {
        /// Some pools cannot be used because they contradict themselves.
        has_invalid_pools: bool,
    },
    /// The Pod cannot be placed anywhere before something else changes.
    Fatal(FatalDeviceError),
    /// Whether there is a way is not known.
    StepLimit {
        /// The claim that was looked at last.
        claim: ObjectKey,
        steps: u32,
    },
}

impl AllocationFailure {
    /// What people read of a claim whose search was given up on some Nodes.
    pub fn step_limit_text(claim: &ObjectKey, nodes: usize, steps: u32) -> String {
        format!("search limit reached: claim {claim} on {nodes} node(s), {steps} steps")
    }
}

impl fmt::Display for AllocationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit { has_invalid_pools: false } => {
                f.write_str("cannot allocate all claims")
            }
            Self::DoesNotFit { has_invalid_pools: true } => {
                f.write_str("invalid resource pools were encountered")
            }
            Self::Fatal(error) => error.fmt(f),
            Self::StepLimit { claim, steps } => {
                f.write_str(&Self::step_limit_text(claim, 1, *steps))
            }
        }
    }
}

impl std::error::Error for AllocationFailure {}

impl From<FatalDeviceError> for AllocationFailure {
    fn from(error: FatalDeviceError) -> Self {
        Self::Fatal(error)
    }
}

/// What ends the whole attempt. The texts are kube-scheduler's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FatalDeviceError {
    /// A node selector of a slice cannot be parsed.
    NodeSelector {
        node: NodeName,
        slice: Arc<str>,
        why: Arc<str>,
    },
    /// A selector of a later version.
    UnknownSelector {
        claim: ObjectKey,
        request: Arc<str>,
        index: usize,
    },
    /// No class is named, or the request is of a later version.
    NoClass {
        claim: ObjectKey,
        request: Arc<str>,
    },
    ClassNotFound {
        claim: ObjectKey,
        request: Arc<str>,
        class: Arc<str>,
    },
    UnknownMode {
        claim: ObjectKey,
        request: Arc<str>,
        mode: Arc<str>,
    },
    UnknownConstraint {
        claim: ObjectKey,
        index: usize,
    },
    /// All devices are asked for, and a pool is not complete.
    PoolIncomplete {
        claim: ObjectKey,
        request: Arc<str>,
        pool: PoolId,
    },
    /// All devices are asked for, and a pool contradicts itself.
    PoolInvalid {
        claim: ObjectKey,
        request: Arc<str>,
        pool: PoolId,
    },
    TooManyDevices {
        claim: ObjectKey,
        devices: usize,
        devices_max: usize,
    },
    /// All devices are asked for, and a constraint keeps one out.
    ConstraintExcludes {
        claim: ObjectKey,
        request: Arc<str>,
        device: DeviceId,
    },
    ClassSelectorFails {
        class: Arc<str>,
        index: usize,
        why: Arc<str>,
    },
    SelectorFails {
        claim: ObjectKey,
        index: usize,
        why: Arc<str>,
    },
    /// A device can be used from Nodes of several terms, which an allocation cannot say.
    SeveralTerms {
        claim: ObjectKey,
        terms: usize,
    },
}

impl fmt::Display for FatalDeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeSelector { slice, why, .. } => write!(
                f,
                "gather pool information: failed to perform node selection for slice {slice}: failed to parse node selector: {why}"
            ),
            Self::UnknownSelector { claim, request, index } => write!(
                f,
                "claim {claim}, request {request}, selector #{index}: CEL expression empty (unsupported selector type?)"
            ),
            Self::NoClass { claim, request } => write!(
                f,
                "claim {claim}, request {request}: missing device class name (unsupported request type?)"
            ),
            Self::ClassNotFound { claim, request, class } => write!(
                f,
                "claim {claim}, request {request}: could not retrieve device class {class}: deviceclass.resource.k8s.io {class:?} not found"
            ),
            Self::UnknownMode { claim, request, mode } => {
                write!(f, "claim {claim}, request {request}: unsupported count mode {mode}")
            }
            Self::UnknownConstraint { claim, index } => write!(
                f,
                "claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)"
            ),
            Self::PoolIncomplete { claim, request, pool } => write!(
                f,
                "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently being updated"
            ),
            Self::PoolInvalid { claim, request, pool } => write!(
                f,
                "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently invalid"
            ),
            Self::TooManyDevices { claim, devices, devices_max } => write!(
                f,
                "claim {claim}: number of requested devices {devices} exceeds the claim limit of {devices_max}"
            ),
            Self::ConstraintExcludes { claim, request, device } => write!(
                f,
                "claim {claim}, request {request}: cannot add device {device} because a claim constraint would not be satisfied"
            ),
            Self::ClassSelectorFails { class, index, why } => {
                write!(f, "class {class}: selector #{index}: {why}")
            }
            Self::SelectorFails { claim, index, why } => {
                write!(f, "claim {claim}: selector #{index}: {why}")
            }
            Self::SeveralTerms { claim, terms } => write!(
                f,
                "create NodeSelector for claim {}: unsupported ResourceSlice.NodeSelector with {terms} terms",
                claim.name
            ),
        }
    }
}

impl std::error::Error for FatalDeviceError {}
