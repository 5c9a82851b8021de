//! Why the volumes of a Pod that fits nowhere keep it waiting, claim by claim. kube-scheduler's reasons name no claim, no
//! PersistentVolume and no StorageClass; this is what stands behind them. It is made for a report, not for a decision.

mod problem;
mod text;
mod volumes;

use std::sync::Arc;

use model::{ClusterPod, NodeName, ObjectKey, PersistentVolumeClaim, Quantity};
use serde::{Deserialize, Serialize};

pub use problem::{ClaimProblem, PublishedCapacity};
pub use text::VOLUMES;
pub(crate) use volumes::looked_at;
pub use volumes::{VolumeLack, VolumesLacking, VolumesLookedAt};

use crate::cluster::Cluster;
use crate::cycle::PodContext;
use crate::plugins::{
    bound_claims, claims_in_use, claims_over_limit, delayed_claims, immediate_claims, other_zones,
    sort_claims,
};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::volume_problem::VolumeProblem;

/// Enough to mend a Pod. A report goes through the volumes of a class once for each.
const CLAIMS_MAX: usize = 8;

/// A reason that Nodes gave for a Pod.
#[derive(Clone, Copy, Debug)]
pub struct ReasonSeen<'a> {
    pub reason: &'a Reason,
    pub nodes: usize,
    /// A few of them: only these are looked at again.
    pub examples: &'a [NodeName],
}

/// What is in the way of a Pod, by claim, in the order of kube-scheduler's rules. A claim with several problems is there
/// several times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeDiagnosis {
    pub claims: Vec<ClaimDiagnosis>,
    /// How many more there are.
    pub more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimDiagnosis {
    pub claim: ObjectKey,
    /// Empty: it names none, or does not exist.
    pub class: Arc<str>,
    pub request: Quantity,
    pub state: ClaimState,
    pub problem: ClaimProblem,
}

/// How far the claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimState {
    Missing,
    Deleting,
    Lost,
    Bound,
    Pending,
}

/// What one rule finds.
pub(crate) type Found = Vec<(ObjectKey, ClaimProblem)>;

/// What stands behind those of the reasons that are about claims. Where the cluster has changed since they were given, the
/// rest: perhaps nothing.
pub fn diagnose_volumes(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    seen: &[ReasonSeen<'_>],
) -> VolumeDiagnosis {
    let mut diagnosis = VolumeDiagnosis::default();
    if pod.volumes.is_empty() {
        return diagnosis;
    }
    let mut seen = seen.to_vec();
    seen.sort_by_key(|it| it.reason);
    for (key, problem) in seen.iter().flat_map(|it| behind(rules, cluster, pod, it)) {
        let claims = &diagnosis.claims;
        if claims.iter().any(|it| it.claim == key && it.problem.label() == problem.label()) {
            continue;
        }
        if claims.len() == CLAIMS_MAX {
            diagnosis.more += 1;
        } else {
            diagnosis.claims.push(claim_diagnosis(cluster, key, problem));
        }
    }
    diagnosis
}

fn behind(rules: &Rules, cluster: &Cluster, pod: &ClusterPod, seen: &ReasonSeen<'_>) -> Found {
    let context = PodContext { rules, cluster, pod };
    let nodes = seen.examples.iter().filter_map(|name| cluster.nodes.get(name));
    let sorted = || sort_claims(context).unwrap_or_default();
    match seen.reason {
        Reason::Volume { problem, .. } => of_pod(cluster, pod, problem).into_iter().collect(),
        &Reason::UNBOUND_IMMEDIATE_CLAIMS => immediate_claims(cluster, pod),
        &(Reason::NO_VOLUME_TO_BIND | Reason::NOT_ENOUGH_STORAGE) => {
            delayed_claims(cluster, &sorted(), seen.reason, &nodes.collect::<Vec<_>>())
        }
        &(Reason::VOLUME_NODE_AFFINITY | Reason::BOUND_VOLUME_NOT_FOUND) => {
            bound_claims(cluster, &sorted(), &nodes.collect::<Vec<_>>())
        }
        &Reason::VOLUME_ZONE => nodes.flat_map(|node| other_zones(cluster, pod, node)).collect(),
        &Reason::MAX_VOLUME_COUNT => {
            let claims = sorted();
            nodes.flat_map(|node| claims_over_limit(context, &claims, node, seen.nodes)).collect()
        }
        &Reason::READ_WRITE_ONCE_POD => claims_in_use(cluster, pod),
        _ => Found::new(),
    }
}

/// A problem that kube-scheduler names already: what to do about it.
fn of_pod(
    cluster: &Cluster,
    pod: &ClusterPod,
    problem: &VolumeProblem,
) -> Option<(ObjectKey, ClaimProblem)> {
    Some(match problem.clone() {
        VolumeProblem::ClaimNotFound { claim, .. } => (claim, ClaimProblem::NotFound),
        VolumeProblem::ClaimNotMade { claim } => (claim, ClaimProblem::NotMade),
        VolumeProblem::ClaimLost { claim, volume } => (claim, ClaimProblem::Lost { volume }),
        VolumeProblem::ClaimDeleted { claim } => (claim, ClaimProblem::Deleted),
        VolumeProblem::ClaimNotOwned { claim, .. } => (claim, ClaimProblem::NotOwned),
        VolumeProblem::VolumeNotFound { volume } => {
            let mut claims = claims_of(cluster, pod);
            let claim = claims.find(|it| it.volume_name.as_ref() == Some(&volume))?;
            (claim.key.clone(), ClaimProblem::VolumeNotFound { volume })
        }
        // kube-scheduler's words name the class, and what it lacks.
        VolumeProblem::ClassWithoutBindingMode { .. } => return None,
        VolumeProblem::ClassNotFound { class } => {
            let claim = claims_of(cluster, pod).find(|it| it.class == class)?;
            (claim.key.clone(), ClaimProblem::ClassNotFound)
        }
    })
}

/// The claims of the Pod that exist.
pub(crate) fn claims_of<'a>(
    cluster: &'a Cluster,
    pod: &'a ClusterPod,
) -> impl Iterator<Item = &'a Arc<PersistentVolumeClaim>> {
    let names = pod.volumes.iter().filter_map(|volume| volume.claim());
    names.filter_map(|name| {
        let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
        cluster.objects.claims.get(&key)
    })
}

fn claim_diagnosis(cluster: &Cluster, key: ObjectKey, problem: ClaimProblem) -> ClaimDiagnosis {
    let claim = cluster.objects.claims.get(&key);
    let state = match claim {
        None => ClaimState::Missing,
        Some(claim) if claim.is_lost => ClaimState::Lost,
        Some(claim) if claim.is_deleting => ClaimState::Deleting,
        Some(claim) if claim.bound_to().is_some() => ClaimState::Bound,
        Some(_) => ClaimState::Pending,
    };
    ClaimDiagnosis {
        claim: key,
        class: claim.map(|claim| claim.class.clone()).unwrap_or_default(),
        request: claim.map(|claim| claim.request).unwrap_or_default(),
        state,
        problem,
    }
}
