//! What is wrong with the ResourceClaims of a Pod as a whole, in kube-scheduler's words where it has some.

use std::fmt;
use std::sync::Arc;

use model::{ObjectKey, ResourceClaim};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceProblem {
    /// The controller has not made it of its template yet.
    ClaimNotMade {
        pod: ObjectKey,
    },
    ClaimNotFound {
        claim: ObjectKey,
    },
    ClaimDeleted {
        claim: ObjectKey,
    },
    /// A claim of the name of the Pod's own that belongs to something else.
    ClaimNotOwned {
        claim: ObjectKey,
        pod: ObjectKey,
    },
    /// An entry of a later version.
    UnknownEntry {
        pod: ObjectKey,
        entry: Arc<str>,
    },
    ClassNotFound {
        request: Arc<str>,
        class: Arc<str>,
    },
    UnknownRequest {
        claim: Arc<str>,
        request: Arc<str>,
    },
    /// Another Pod with the same claim is being bound.
    InAllocation {
        claim: Arc<str>,
    },
    /// kube-scheduler finds out when it writes, again and again.
    TooManyUsers {
        claim: ObjectKey,
    },
    /// Whether there is a way to allocate the claim on the Node is not known.
    SearchLimit {
        claim: ObjectKey,
    },
}

impl DeviceProblem {
    /// What would have to change.
    pub fn wakes_on(&self) -> String {
        match self {
            Self::ClaimNotMade { .. } => "the ResourceClaim of its template is created".to_owned(),
            Self::ClaimNotFound { claim } => format!("the ResourceClaim {claim} is created"),
            Self::ClaimDeleted { claim } | Self::ClaimNotOwned { claim, .. } => {
                format!("the ResourceClaim {claim} is replaced")
            }
            Self::UnknownEntry { .. } | Self::UnknownRequest { .. } => {
                "a change of the Pod".to_owned()
            }
            Self::ClassNotFound { class, .. } => format!("the DeviceClass {class} is created"),
            Self::InAllocation { claim } => format!("the ResourceClaim {claim} is allocated"),
            Self::TooManyUsers { claim } => {
                format!("a Pod that uses the ResourceClaim {claim} ends")
            }
            Self::SearchLimit { claim } => {
                format!("devices that the ResourceClaim {claim} asks for change")
            }
        }
    }
}

impl fmt::Display for DeviceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimNotMade { pod } => {
                write!(f, "pod \"{pod}\": ResourceClaim not created yet")
            }
            Self::ClaimNotFound { claim } => write!(f, "could not find ResourceClaim \"{claim}\""),
            Self::ClaimDeleted { claim } => {
                write!(f, "resourceclaim \"{}\" is being deleted", claim.name)
            }
            Self::ClaimNotOwned { claim, pod } => {
                write!(f, "ResourceClaim {claim} was not created for Pod {pod} (Pod is not owner)")
            }
            Self::UnknownEntry { pod, entry } => write!(
                f,
                "pod \"{pod}\", spec.resourceClaim \"{entry}\": none of the supported fields are set"
            ),
            Self::ClassNotFound { request, class } => {
                write!(f, "request {request}: device class {class} does not exist")
            }
            Self::UnknownRequest { claim, request } => {
                write!(f, "resource claim {claim}, request {request}: unknown request type")
            }
            Self::InAllocation { claim } => {
                write!(f, "resource claim {claim} is in the process of being allocated")
            }
            Self::TooManyUsers { claim } => write!(
                f,
                "resource claim {claim} is reserved for {} users, as many as it may have",
                ResourceClaim::USERS_MAX
            ),
            Self::SearchLimit { claim } => write!(f, "search limit reached: claim {claim}"),
        }
    }
}
