//! Every output of the engine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{Grant, NodeName, ObjectKey, ObjectKind, ObjectRef, ObjectUid, PodSpec, PodUid};

use crate::event::EvictionStep;
use crate::uses::Facts;

/// What `Engine::poll` found to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Poll {
    /// A Pod has a place: bind it now.
    Bind(Bind),
    /// The budget is spent and there is more to do: hand over new events, then poll again.
    Yield,
    /// Nothing can be decided until an event comes or `poll_timeout` is reached.
    Idle,
}

/// What changes the cluster, a decision or what follows from one. Each outcome must come back as an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Action {
    Bind(Bind),
    /// One step of the eviction of a victim.
    Evict(Eviction),
}

/// How much one `poll` may do before it yields.
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
