//! Every output of the engine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{
    Allocation, Grant, NodeName, ObjectKey, ObjectKind, ObjectRef, ObjectUid, Pod, PodSpec, PodUid,
    Reservable,
};

use crate::event::EvictionStep;
use crate::uses::Facts;

/// What `Engine::poll` found to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Poll {
    /// A Pod has a place: bind it now.
    Bind(Bind),
    /// A Pod has a place: write what must come before its Binding.
    Prepare(Prepare),
    /// The budget is spent and there is more to do: hand over new events, then poll again.
    Yield,
    /// Nothing can be decided until an event comes or `poll_timeout` is reached.
    Idle,
}

/// What changes the cluster, a decision or what follows from one. Each outcome must come back as an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Action {
    Prepare(Prepare),
    Bind(Bind),
    /// One step of the eviction of a victim.
    Evict(Eviction),
}

/// How much a call may do: attempts of one [`Engine::poll`](crate::Engine::poll), Nodes of one question.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Work {
    pub attempts_max: u32,
    /// Nodes that a question may look at.
    pub nodes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bind {
    pub pod: ObjectKey,
    pub uid: PodUid,
    pub node: NodeName,
    /// What the Pod asked for when it was decided. The journal has it already, in the event that brought it.
    #[serde(skip)]
    pub spec: Arc<PodSpec>,
    /// Set for Pods with references: the annotations that were read must still be the same.
    pub resource_version: Option<Arc<str>>,
    /// The daemons' handles of what the Pod refers to.
    pub handles: Vec<(ObjectKind, Arc<str>)>,
    /// The hashes of their attestation tickets, in the same order, where there are any.
    pub ticket_hashes: Vec<Arc<str>>,
    /// Set for Pods with references.
    pub grant: Option<Grant>,
}

impl Bind {
    pub(crate) fn new(pod: &Pod, node: NodeName, grant: Grant, objects: &[Reservable]) -> Self {
        let handles = objects.iter().filter_map(|it| Some((it.object.kind, it.handle.clone()?)));
        let has_references = !objects.is_empty();
        Self {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node,
            spec: pod.spec.clone(),
            resource_version: has_references.then(|| pod.resource_version.clone()),
            handles: handles.collect(),
            ticket_hashes: objects.iter().filter_map(|it| it.ticket_hash.clone()).collect(),
            grant: has_references.then_some(grant),
        }
    }
}

/// What must be written before a placed Pod is bound. Where that leads to something that others do, it is awaited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prepare {
    pub pod: ObjectKey,
    pub uid: PodUid,
    pub node: NodeName,
    /// One after the other; the first that is refused ends it.
    pub writes: Vec<PrepareWrite>,
}

/// One of these writes. Each holds for the version that was read, and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PrepareWrite {
    /// `claimRef` of a PersistentVolume: it is for this claim.
    BindVolume {
        volume: Arc<str>,
        volume_uid: Arc<str>,
        resource_version: Arc<str>,
        claim: ObjectKey,
        claim_uid: Arc<str>,
        /// An administrator has reserved it for a claim of this name.
        is_reserved: bool,
    },
    /// The annotation `volume.kubernetes.io/selected-node` of a claim: its volume is to be made for the Pod's Node.
    SelectNode { claim: ObjectKey, claim_uid: Arc<str>, resource_version: Arc<str> },
    /// The finalizer of a ResourceClaim: it outlives its deletion while it has devices.
    ProtectClaim { claim: ObjectKey, claim_uid: Arc<str> },
    /// The status of a ResourceClaim: it is reserved for the Pod, and has these devices if it had none.
    ReserveClaim { claim: ObjectKey, claim_uid: Arc<str>, allocation: Option<Arc<Allocation>> },
    /// The status of a ResourceClaim: it has no devices and no users any more.
    DeallocateClaim { claim: ObjectKey, claim_uid: Arc<str>, resource_version: Arc<str> },
}

/// What is reported on the API server, behind the actions: conditions, Events, statuses. Nothing else follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The Pod is unschedulable: condition `PodScheduled=False` and an Event. That it was written, or could
    /// not be, must come back as an event; until then the Pod is not decided.
    Unschedulable(Unschedulable),
    /// The use of an object has changed: its status is written.
    Used(ObjectUsed),
    /// The Pod was bound: an Event.
    Scheduled { pod: ObjectKey, uid: PodUid, node: NodeName },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unschedulable {
    pub pod: ObjectKey,
    pub uid: PodUid,
    /// The version that was rejected, as a precondition: a Pod that has changed since is not written.
    pub resource_version: Arc<str>,
    pub reason: ConditionReason,
    pub message: Arc<str>,
    /// The Pod has no such condition yet.
    pub first: bool,
    /// `status.nominatedNodeName`: the Node on which room is being made for the Pod. `None` clears
    /// it.
    pub nominated_node: Option<NodeName>,
}

/// The reason of a condition `PodScheduled=False`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionReason {
    Unschedulable,
    SchedulerError,
}

impl ConditionReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::SchedulerError => "SchedulerError",
        }
    }
}

/// One step of the eviction of a victim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    pub victim: ObjectKey,
    pub uid: PodUid,
    pub step: EvictionStep,
    pub node: NodeName,
    /// The Pod that room is made for.
    pub preemptor: ObjectKey,
    pub preemptor_uid: PodUid,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectUsed {
    pub object: ObjectRef,
    pub uid: ObjectUid,
    pub facts: Facts,
}
