use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An entry of `spec.resourceClaims` of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodClaim {
    pub name: Arc<str>,
    pub source: PodClaimSource,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PodClaimSource {
    /// `resourceClaimName`.
    Claim(Arc<str>),
    /// `resourceClaimTemplateName`, with what `status.resourceClaimStatuses` says of it.
    Template(TemplateClaim),
    /// Neither.
    Unknown,
}

/// What has become of a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TemplateClaim {
    NotMadeYet,
    NotNeeded,
    /// The name of the claim that was made for the Pod.
    Made(Arc<str>),
}

impl PodClaim {
    /// The name of the claim, if there is to be one and it is known.
    pub fn claim(&self) -> Option<&Arc<str>> {
        match &self.source {
            PodClaimSource::Claim(name) | PodClaimSource::Template(TemplateClaim::Made(name)) => {
                Some(name)
            }
            PodClaimSource::Template(TemplateClaim::NotMadeYet | TemplateClaim::NotNeeded)
            | PodClaimSource::Unknown => None,
        }
    }
}
