use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Amount, Deletion, Hold, NodeName, ObjectKey, ObjectKind, ObjectRef, ObjectUid, PodClaim,
    PodUid, PodVolume, SchedulingSpec,
};

/// A Pod as the engine sees it: identity, what it needs, where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    pub key: ObjectKey,
    pub uid: PodUid,
    /// The version that `spec` was read from. A Binding of a Pod with references
    /// is conditioned on it, so that the annotations cannot change in between.
    /// Empty for a Pod that is not ours to place: it is not needed.
    pub resource_version: Arc<str>,
    pub created_at_unix_s: i64,
    pub spec: Arc<PodSpec>,
    pub assignment: Assignment,
    /// `status.nominatedNodeName`.
    pub nominated_node: Option<NodeName>,
    /// `status.startTime`; `None` until the kubelet has seen the Pod.
    pub started_at_unix_s: Option<i64>,
    pub deletion: Deletion,
    /// This scheduler has written `DisruptionTarget` on it, and it is not being deleted yet.
    #[serde(default)]
    pub is_announced: bool,
    /// `terminationGracePeriodSeconds`: how long it may take to end.
    #[serde(default)]
    pub grace_period: Duration,
    /// The message of the Pod's `PodScheduled=False` condition, if it has one:
    /// a restarted scheduler does not write the same again.
    pub condition_message: Option<Arc<str>>,
    pub declared_end: Option<Box<DeclaredEnd>>,
}

/// When a Pod says that it will have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredEnd {
    pub at_unix_s: i64,
    pub by: DeclaredBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeclaredBy {
    /// The annotation `corridoros.io/expectedEnd`.
    ExpectedEnd,
    /// `activeDeadlineSeconds` after its start: the kubelet sees to it.
    ActiveDeadline,
}

impl DeclaredBy {
    pub fn name(self) -> &'static str {
        match self {
            Self::ExpectedEnd => "corridoros.io/expectedEnd",
            Self::ActiveDeadline => "activeDeadlineSeconds",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignment {
    /// Ours to place.
    Waiting,
    /// Ours, but not to be placed before its scheduling gates are gone.
    Gated { gates: Vec<Arc<str>> },
    /// Ours, not on a Node and being deleted.
    Leaving,
    /// Another scheduler's to place. Only its nominated Node, if any, matters here.
    Foreign,
    /// On a Node, put there by any scheduler.
    Bound { node: NodeName, grant: Option<Box<Grant>> },
    /// Succeeded or failed: it uses nothing any more.
    Finished,
}

/// What a Pod asks of the cluster. Two Pods with equal specs are interchangeable
/// to the scheduler, but for their arrival.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodSpec {
    /// `schedulerName`: by which profile it is placed.
    pub profile: Arc<str>,
    pub namespace: Arc<str>,
    pub scheduling: Arc<SchedulingSpec>,
    /// At most one of each kind, in the order of kinds: all are met together, or none.
    pub needs: Vec<Need>,
    /// `None`: as the configuration says.
    pub failure_policy: Option<FailurePolicy>,
    pub hold: Option<Hold>,
    /// Those that bear on where it can go, in the order of `spec.volumes`. Not part of its scheduling spec, which the
    /// Pods of a StatefulSet share: they differ in nothing else.
    #[serde(default)]
    pub volumes: Arc<[PodVolume]>,
    /// `spec.resourceClaims`, with the claims that were made of templates.
    #[serde(default)]
    pub resource_claims: Arc<[PodClaim]>,
}

impl PodSpec {
    /// Whether it has any, of volumes or of devices.
    pub fn has_claims(&self) -> bool {
        !self.volumes.is_empty() || !self.resource_claims.is_empty()
    }

    pub fn need_of(&self, object: &ObjectRef) -> Option<&Need> {
        self.needs.iter().find(|need| need.object == *object)
    }
}

/// An object that a Pod refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Need {
    pub object: ObjectRef,
    /// Bandwidth to reserve. `None`: the object must be Ready with its floor met, no more.
    pub amount: Option<Amount>,
}

impl Need {
    pub fn reserves(&self) -> Amount {
        self.amount.unwrap_or(Amount::ZERO)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// Wait in line until the floor can be met.
    #[default]
    Queue,
    /// Leave the line; try again when the Pod or the object's spec changes, or it enters Ready.
    FailFast,
}

/// What a bound Pod holds of corridors and bundles: the durable ledger, one entry per Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub corridor: Option<Granted>,
    pub bundle: Option<Granted>,
}

impl Grant {
    pub fn parts(&self) -> impl Iterator<Item = &Granted> {
        self.corridor.iter().chain(&self.bundle)
    }

    pub fn part_mut(&mut self, kind: ObjectKind) -> &mut Option<Granted> {
        match kind {
            ObjectKind::Corridor => &mut self.corridor,
            ObjectKind::MemoryBundle => &mut self.bundle,
        }
    }
}

/// Of which object, and how much; an amount of 0 is a reference that reserves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    pub uid: ObjectUid,
    pub amount: Amount,
}
