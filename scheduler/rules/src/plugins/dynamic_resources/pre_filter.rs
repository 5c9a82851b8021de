//! The claims of the Pod, sorted by whether they have their devices already. PreEnqueue's look-ups are here, too: a Pod
//! that fails them waits as one that fits on no Node.

use std::sync::Arc;

use model::{
    ClusterPod, ObjectKey, PodClaim, PodClaimSource, RequestAlternatives, ResourceClaim,
    SubRequest, TemplateClaim,
};

use super::DeviceProblem;
use crate::cluster::Cluster;
use crate::cycle::{CycleState, PodContext, PreFilterStatus};
use crate::reason::Reason;

/// In the order of the Pod's entries, each once: two entries may name one claim.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceClaims {
    pub allocated: Vec<Arc<ResourceClaim>>,
    pub to_allocate: Vec<Arc<ResourceClaim>>,
}

impl DeviceClaims {
    pub fn is_empty(&self) -> bool {
        self.allocated.is_empty() && self.to_allocate.is_empty()
    }
}

pub(super) fn pre_filter(
    PodContext { cluster, pod, .. }: PodContext<'_>,
    state: &mut CycleState,
) -> Result<(), PreFilterStatus> {
    if !pod.resource_claims.is_empty() {
        state.device_claims = device_claims(cluster, pod)
            .map_err(|problem| PreFilterStatus::Rejected(Reason::Devices(problem)))?;
    }
    Ok(())
}

pub(super) fn device_claims(
    cluster: &Cluster,
    pod: &ClusterPod,
) -> Result<DeviceClaims, DeviceProblem> {
    let mut claims: Vec<Arc<ResourceClaim>> = Vec::new();
    for entry in pod.resource_claims.iter() {
        let Some(claim) = usable_claim(cluster, pod, entry)? else { continue };
        if !claims.iter().any(|known| known.uid == claim.uid) {
            claims.push(claim.clone());
        }
    }
    let mut sorted = DeviceClaims::default();
    for claim in claims {
        if !cluster.devices.has_room_for_user(&claim, &pod.uid) {
            return Err(DeviceProblem::TooManyUsers { claim: claim.key.clone() });
        }
        if claim.allocation.is_some() {
            sorted.allocated.push(claim);
            continue;
        }
        if cluster.devices.is_assumed_for_other(&claim, &pod.uid) {
            return Err(DeviceProblem::InAllocation { claim: claim.key.name.clone() });
        }
        check_classes(cluster, &claim)?;
        sorted.to_allocate.push(claim);
    }
    Ok(sorted)
}

/// `None`: the Pod needs none for this entry.
fn usable_claim<'a>(
    cluster: &'a Cluster,
    pod: &ClusterPod,
    entry: &PodClaim,
) -> Result<Option<&'a Arc<ResourceClaim>>, DeviceProblem> {
    let (name, is_own) = match &entry.source {
        PodClaimSource::Claim(name) => (name, false),
        PodClaimSource::Template(TemplateClaim::Made(name)) => (name, true),
        PodClaimSource::Template(TemplateClaim::NotNeeded) => return Ok(None),
        PodClaimSource::Template(TemplateClaim::NotMadeYet) => {
            return Err(DeviceProblem::ClaimNotMade { pod: pod.key.clone() });
        }
        PodClaimSource::Unknown => {
            let entry = entry.name.clone();
            return Err(DeviceProblem::UnknownEntry { pod: pod.key.clone(), entry });
        }
    };
    let claim = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
    let Some(known) = cluster.objects.resource_claims.get(&claim) else {
        return Err(DeviceProblem::ClaimNotFound { claim });
    };
    if known.is_deleting {
        return Err(DeviceProblem::ClaimDeleted { claim });
    }
    if is_own && known.controller.as_ref() != Some(&pod.uid) {
        return Err(DeviceProblem::ClaimNotOwned { claim, pod: pod.key.clone() });
    }
    Ok(Some(known))
}

fn check_classes(cluster: &Cluster, claim: &ResourceClaim) -> Result<(), DeviceProblem> {
    for request in &claim.spec.requests {
        let class_of = |asked: &SubRequest, name: Arc<str>| {
            let class = asked.class.clone();
            let is_known = cluster.objects.device_classes.contains_key(&class);
            if is_known {
                Ok(())
            } else {
                Err(DeviceProblem::ClassNotFound { request: name, class })
            }
        };
        match &request.alternatives {
            RequestAlternatives::Exactly(asked) => class_of(asked, request.name.clone())?,
            RequestAlternatives::FirstAvailable(all) => {
                for asked in all {
                    class_of(asked, format!("{}/{}", request.name, asked.name).into())?;
                }
            }
            RequestAlternatives::Unknown => {
                let (claim, request) = (claim.key.name.clone(), request.name.clone());
                return Err(DeviceProblem::UnknownRequest { claim, request });
            }
        }
    }
    Ok(())
}
