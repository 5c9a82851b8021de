//! The rules of kube-scheduler v1.36 in the shortest form that is obviously right.
//!
//! No index, no cache, no state: a decision is a function of a [`Cluster`], a Pod and the
//! [`Rules`] of a profile. It is the reference for every faster implementation, and is
//! itself compared with the real kube-scheduler with `percentageOfNodesToScore: 100`. Quirks of kube-scheduler
//! are reproduced, with a comment at each place.
//!
//! ```text
//! decide ──▶ PreFilter (the Pod as a whole) ──▶ Filter on each Node ──▶ Score of those that pass
//!                 │                                 │
//!                 └───────── Rejection ◀────────────┘──▶ PostFilter (preempt)
//! ```
//!
//! What kube-scheduler leaves to chance is returned as a set: the Nodes with the highest score,
//! the Nodes on which preemption is equally good.

mod assumed_volumes;
mod by_topology;
mod cluster;
mod cluster_objects;
mod cycle;
mod decide;
mod device_change;
mod device_state;
mod devices;
mod failure;
mod node_use;
mod plugins;
mod reason;
mod rejection;
mod rules;
mod score;
mod trial;
mod volume_change;
mod volume_diagnosis;
mod volume_index;
mod volume_needs;
mod volume_problem;
mod wake;

#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;

pub use assumed_volumes::{AssumedVolumes, VolumeOwner};
pub use cluster::{ByUid, Cluster, NodeUsage};
pub use cluster_objects::ObjectEffect;
pub use decide::{
    Decision, Placement, best_among, decide, decide_among, filter, filter_without, fits_somewhere,
    rejected_as_whole,
};
pub use device_change::{DeviceChange, DeviceEffect};
pub use device_state::{DeviceState, SelectorVerdicts, TypeVerdicts};
pub use devices::{
    AllocationFailure, AllocatorInput, DEVICES_PER_CLAIM_MAX, DeviceClasses, DeviceDiagnosis,
    DevicePools, DeviceUse, FatalDeviceError, PoolId, RequestDiagnosis, STEPS_MAX, Selectors,
    TakenChange, TakenDevices, allocate, allocation_score, diagnose_devices, name_shares,
};
pub use failure::{Failure, FailureCause};
pub use plugins::{
    Attachable, CLAIMS_NOT_FOUND, Candidate, ClaimToReserve, ClusterObject, ClusterObjectChange,
    ClusterObjectId, ClusterObjectKind, ClusterObjects, Constraint, DeviceFit, DeviceNeeds,
    DeviceProblem, Ineligible, PREEMPTION, PREEMPTION_WITH_CLAIMS, Plugin, Point, Preemption,
    PreemptionDryRun, PreemptionRefusal, Registration, ResourceUse, Role, VictimCost, Victims,
    attach_limits, attached_by, attached_to, balanced_score, candidates, constraints,
    existing_term_matches, find_pod_devices, find_pod_volumes, fit_score, has_every_key,
    has_leaving_victims, own_term_matches, preempt, preempt_after, protects, score_needs_every_key,
    victims_by,
};
pub use reason::{FixedReason, Reason, fixed as fixed_reason};
pub use rejection::{Rejection, nodes_available};
pub use rules::{
    DefaultSpread, ResourceWeight, Rules, ScoringStrategy, ShapePoint, SwitchedOff, cpu_and_memory,
};
pub use score::{NodeScore, PluginScore, ScoreError, score};
pub use volume_change::{ClaimInterest, ClaimScope, VolumeChange, claims_reject};
pub use volume_diagnosis::{
    ClaimDiagnosis, ClaimProblem, ClaimState, PublishedCapacity, ReasonSeen, VOLUMES,
    VolumeDiagnosis, VolumeLack, VolumesLacking, VolumesLookedAt, diagnose_volumes,
};
pub use volume_needs::{PodVolumeNeeds, VolumeNeeds};
pub use volume_problem::VolumeProblem;
pub use wake::{Chances, Prospect, rejection_may_have_changed};
