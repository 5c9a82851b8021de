//! Counters of attempts and queues, as kube-scheduler has them. Durations are measured by the driver: the engine has no
//! clock.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{Assignment, Instant, PodUid};

use crate::engine::Engine;
use crate::event::Event;
use crate::observe::{Watched, WatchedId};
use crate::record::{Record, Stage};
use crate::rejection::Rejection;

/// Attempts that placed no Pod, and what brought Pods into each queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueMetrics {
    /// By profile.
    failed_attempts: BTreeMap<Arc<str>, FailedAttempts>,
    /// Attempts after which preemption would not have helped either.
    pub failed_preemptions: u64,
    queued: [[u64; QueuedBy::ALL.len()]; Queue::ALL.len()],
    /// What is being handled now.
    now: QueuedBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempts {
    pub unschedulable: u64,
    /// The Pod's rules could not be applied.
    pub failed: u64,
}

/// The attempts for one Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptHistory {
    pub count: u32,
    pub first: Option<Instant>,
    /// Why an object held it the last time, and since when for that.
    pub held: Option<Box<(Cow<'static, str>, Instant)>>,
}

impl AttemptHistory {
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
            | Stage::Binding(_)
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

impl QueueMetrics {
    /// By profile.
    pub fn failed_attempts(&self) -> impl Iterator<Item = (&Arc<str>, FailedAttempts)> {
        self.failed_attempts.iter().map(|(profile, counts)| (profile, *counts))
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
        let attempts = &mut record.attempts;
        attempts.count = attempts.count.saturating_add(1);
        attempts.first.get_or_insert(now);
        attempts.rejected(now, record.rejection.as_deref());
        let Some(rejection) = record.rejection.as_deref() else { return };
        if !self.failed_attempts.contains_key(&record.pod.spec.profile) {
            self.failed_attempts.insert(record.pod.spec.profile.clone(), FailedAttempts::default());
        }
        if let Some(counts) = self.failed_attempts.get_mut(&record.pod.spec.profile) {
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
            self.failed_preemptions += 1;
        }
    }
}

impl Engine {
    /// What was counted of attempts and queues.
    pub fn queue_metrics(&self) -> &QueueMetrics {
        &self.queue_metrics
    }

    /// What was tried for the Pod so far; `None` if it is not known.
    pub fn attempts(&self, pod: &PodUid) -> Option<&AttemptHistory> {
        self.observed.pods.get(pod).map(|record| &record.attempts)
    }

    /// Whether the Pod is on a Node, or on its way there, because it was decided here.
    pub fn has_placed(&self, pod: &PodUid) -> bool {
        self.observed
            .pods
            .get(pod)
            .is_some_and(|it| it.attempts.count > 0 && it.reservation.is_some())
    }

    /// What Pods come into queues by, because of this event.
    pub(crate) fn queued_by(&self, event: &Event) -> QueuedBy {
        match event {
            Event::Seen(Watched::Pod(pod)) => {
                match (&pod.assignment, self.observed.pods.contains_key(&pod.uid)) {
                    (Assignment::Bound { .. }, false) => QueuedBy::AssignedPodAdd,
                    (Assignment::Bound { .. }, true) => QueuedBy::AssignedPodUpdate,
                    (Assignment::Finished, _) => QueuedBy::AssignedPodDelete,
                    (_, false) => QueuedBy::PodAdd,
                    (_, true) => QueuedBy::PodUpdate,
                }
            }
            Event::Gone(WatchedId::Pod(_)) => QueuedBy::AssignedPodDelete,
            Event::Seen(Watched::Node(node))
                if self.observed.cluster.nodes.contains_key(&node.node.name) =>
            {
                QueuedBy::NodeUpdate
            }
            Event::Seen(Watched::Node(_)) => QueuedBy::NodeAdd,
            Event::PodUnreadable { .. } | Event::KubeletRejected { .. } => QueuedBy::NodeUpdate,
            Event::Gone(WatchedId::Node(_)) => QueuedBy::NodeDelete,
            Event::BindRefused { .. } => QueuedBy::AttemptFailure,
            Event::Seen(Watched::Object(_) | Watched::Backend { .. })
            | Event::Gone(WatchedId::Object(_) | WatchedId::Backend(_)) => QueuedBy::Object,
            Event::Seen(Watched::Policy { .. }) | Event::Gone(WatchedId::Policy(_)) => {
                QueuedBy::Policy
            }
            _ => QueuedBy::Other,
        }
    }
}
