//! What is counted of attempts and queues, for whoever shows it. How long things took, the driver measures: there is
//! no clock here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{Assignment, Instant, PodUid};

use crate::engine::Engine;
use crate::event::Event;
use crate::record::{Record, Stage};
use crate::rejection::Rejection;

/// Attempts that placed nobody, and who came into which queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// By profile.
    in_vain: BTreeMap<Arc<str>, InVain>,
    /// Attempts after which sending others away would not have helped either.
    pub preemptions_in_vain: u64,
    queued: [[u64; QueuedBy::ALL.len()]; Queue::ALL.len()],
    /// What is going on.
    now: QueuedBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InVain {
    pub unschedulable: u64,
    /// The Pod's rules could not be applied.
    pub failed: u64,
}

/// What was tried for one Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    pub count: u32,
    pub first: Option<Instant>,
    /// Why an object held it the last time, and since when for that.
    pub held: Option<Box<(Cow<'static, str>, Instant)>>,
}

impl Tries {
    pub(crate) fn rejected(&mut self, now: Instant, rejection: Option<&Rejection>) {
        let Some(Rejection::Object(rejection)) = rejection else {
            self.held = None;
            return;
        };
        let why = rejection.cause.label();
        if self.held.as_ref().is_none_or(|held| held.0 != why) {
            self.held = Some(Box::new((why.into(), now)));
        }
    }
}

/// kube-scheduler's queues, as far as they can be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    Active,
    Backoff,
    Unschedulable,
}

impl Queue {
    pub const ALL: [Self; 3] = [Self::Active, Self::Backoff, Self::Unschedulable];

    pub fn label(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Backoff => "backoff",
            Self::Unschedulable => "unschedulable",
        }
    }

    fn of(stage: &Stage) -> Option<Self> {
        match stage {
            Stage::Active => Some(Self::Active),
            Stage::Backoff => Some(Self::Backoff),
            Stage::Parked | Stage::InQueue(_) | Stage::Blocked(_) | Stage::OnHold => {
                Some(Self::Unschedulable)
            }
            Stage::Gated
            | Stage::Finished
            | Stage::Reporting
            | Stage::Throttled
            | Stage::Binding { .. }
            | Stage::Bound => None,
        }
    }
}

/// What brought a Pod into a queue. kube-scheduler's names where it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueuedBy {
    PodAdd,
    PodUpdate,
    AssignedPodAdd,
    AssignedPodUpdate,
    AssignedPodDelete,
    NodeAdd,
    NodeUpdate,
    NodeDelete,
    AttemptFailure,
    BackoffComplete,
    Sweep,
    /// A Corridor, a MemoryBundle, or the Lease of the daemon behind them.
    Object,
    Policy,
    #[default]
    Other,
}

impl QueuedBy {
    pub const ALL: [Self; 14] = [
        Self::PodAdd,
        Self::PodUpdate,
        Self::AssignedPodAdd,
        Self::AssignedPodUpdate,
        Self::AssignedPodDelete,
        Self::NodeAdd,
        Self::NodeUpdate,
        Self::NodeDelete,
        Self::AttemptFailure,
        Self::BackoffComplete,
        Self::Sweep,
        Self::Object,
        Self::Policy,
        Self::Other,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::PodAdd => "UnschedulablePodAdd",
            Self::PodUpdate => "UnschedulablePodUpdate",
            Self::AssignedPodAdd => "AssignedPodAdd",
            Self::AssignedPodUpdate => "AssignedPodUpdate",
            Self::AssignedPodDelete => "AssignedPodDelete",
            Self::NodeAdd => "NodeAdd",
            Self::NodeUpdate => "NodeUpdate",
            Self::NodeDelete => "NodeDelete",
            Self::AttemptFailure => "ScheduleAttemptFailure",
            Self::BackoffComplete => "BackoffComplete",
            Self::Sweep => "UnschedulableTimeout",
            Self::Object => "CorridorObjectChange",
            Self::Policy => "AttestationPolicyChange",
            Self::Other => "Other",
        }
    }
}

impl Tally {
    /// By profile.
    pub fn in_vain(&self) -> impl Iterator<Item = (&Arc<str>, InVain)> {
        self.in_vain.iter().map(|(profile, counts)| (profile, *counts))
    }

    pub fn queued(&self, queue: Queue, by: QueuedBy) -> u64 {
        self.queued[queue as usize][by as usize]
    }

    /// What happens from here on is because of this.
    pub(crate) fn because_of(&mut self, event: QueuedBy) {
        self.now = event;
    }

    pub(crate) fn moved(&mut self, from: &Stage, to: &Stage) {
        // Its turn was only put off.
        let was_put_off = matches!(from, Stage::Reporting | Stage::Throttled);
        if let Some(queue) = Queue::of(to).filter(|_| !was_put_off) {
            self.queued[queue as usize][self.now as usize] += 1;
        }
    }

    /// An attempt is over: the Pod is decided, or was rejected.
    pub(crate) fn tried(&mut self, now: Instant, record: &mut Record) {
        let tries = &mut record.tries;
        tries.count = tries.count.saturating_add(1);
        tries.first.get_or_insert(now);
        tries.rejected(now, record.rejection.as_deref());
        let Some(rejection) = record.rejection.as_deref() else { return };
        if !self.in_vain.contains_key(&record.pod.spec.profile) {
            self.in_vain.insert(record.pod.spec.profile.clone(), InVain::default());
        }
        if let Some(counts) = self.in_vain.get_mut(&record.pod.spec.profile) {
            match rejection {
                Rejection::Failed(_) | Rejection::Binding(_) | Rejection::Quarantined => {
                    counts.failed += 1;
                }
                Rejection::Pod(_) | Rejection::Object(_) | Rejection::Nodes(_) => {
                    counts.unschedulable += 1;
                }
            }
        }
        if matches!(rejection, Rejection::Nodes(nodes) if nodes.preemption.is_some()) {
            self.preemptions_in_vain += 1;
        }
    }
}

impl Engine {
    /// What was counted of attempts and queues.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What was tried for the Pod so far; `None` if it is not known.
    pub fn tries(&self, pod: &PodUid) -> Option<&Tries> {
        self.pods.get(pod).map(|record| &record.tries)
    }

    /// Whether the Pod is on a Node, or on its way there, because it was decided here.
    pub fn has_placed(&self, pod: &PodUid) -> bool {
        self.pods.get(pod).is_some_and(|it| it.tries.count > 0 && it.reservation.is_some())
    }

    /// What Pods come into queues by, because of this event.
    pub(crate) fn queued_by(&self, event: &Event) -> QueuedBy {
        match event {
            Event::PodSeen(pod) => match (&pod.assignment, self.pods.contains_key(&pod.uid)) {
                (Assignment::Bound { .. }, false) => QueuedBy::AssignedPodAdd,
                (Assignment::Bound { .. }, true) => QueuedBy::AssignedPodUpdate,
                (Assignment::Finished, _) => QueuedBy::AssignedPodDelete,
                (_, false) => QueuedBy::PodAdd,
                (_, true) => QueuedBy::PodUpdate,
            },
            Event::PodGone(_) => QueuedBy::AssignedPodDelete,
            Event::NodeSeen(node) if self.cluster.nodes.contains_key(&node.node.name) => {
                QueuedBy::NodeUpdate
            }
            Event::NodeSeen(_) => QueuedBy::NodeAdd,
            Event::PodUnreadable { .. } | Event::KubeletRejected { .. } => QueuedBy::NodeUpdate,
            Event::NodeGone(_) => QueuedBy::NodeDelete,
            Event::BindRefused { .. } => QueuedBy::AttemptFailure,
            Event::ObjectSeen(_)
            | Event::ObjectGone(_)
            | Event::BackendSeen { .. }
            | Event::BackendGone(_) => QueuedBy::Object,
            Event::PolicySeen { .. } | Event::PolicyGone(_) => QueuedBy::Policy,
            _ => QueuedBy::Other,
        }
    }
}
