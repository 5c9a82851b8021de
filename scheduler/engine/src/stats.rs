//! Plain counters, and how many Pods are in each stage.

use serde::{Deserialize, Serialize};

use crate::record::Stage;

/// Plain counters for the driver to export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub attempts_scheduled: u64,
    pub attempts_unschedulable: u64,
    pub attempts_error: u64,
    pub quarantined: u64,
    /// Attempts that ended in a preemption, and how many victims those had.
    pub preemptions: u64,
    pub preemption_victims: u64,
    /// Pods that were woken by the sweep and by no event. Not 0: an event was lost, or misjudged.
    pub woken_by_sweep: u64,
    pub reports_dropped: u64,
    pub nodes: usize,
    pub active: usize,
    pub backoff: usize,
    pub parked: usize,
    pub in_queue: usize,
    /// Beside a queue: more bandwidth does not help them.
    pub blocked: usize,
    /// Waiting for a change of the Pod itself.
    pub on_hold: usize,
    pub gated: usize,
    pub binding: usize,
    pub bound: usize,
    pub finished: usize,
}

impl Stats {
    /// One more attempt has failed on a fault of the scheduler. What is counted by looking at Pods and Nodes is counted
    /// again.
    pub(crate) fn after_failure(self) -> Self {
        let Self {
            attempts_scheduled,
            attempts_unschedulable,
            attempts_error,
            quarantined,
            preemptions,
            preemption_victims,
            woken_by_sweep,
            reports_dropped: _,
            nodes: _,
            active: _,
            backoff: _,
            parked: _,
            in_queue: _,
            blocked: _,
            on_hold: _,
            gated: _,
            binding: _,
            bound: _,
            finished: _,
        } = self;
        Self {
            attempts_scheduled,
            attempts_unschedulable,
            attempts_error: attempts_error + 1,
            quarantined,
            preemptions,
            preemption_victims,
            woken_by_sweep,
            ..Self::default()
        }
    }

    pub(crate) fn of_stage(&mut self, stage: &Stage) -> &mut usize {
        match stage {
            Stage::Gated => &mut self.gated,
            Stage::Finished => &mut self.finished,
            Stage::Active | Stage::Reporting | Stage::Throttled => &mut self.active,
            Stage::Backoff => &mut self.backoff,
            Stage::Parked => &mut self.parked,
            Stage::InQueue(_) => &mut self.in_queue,
            Stage::Blocked(_) => &mut self.blocked,
            Stage::OnHold => &mut self.on_hold,
            Stage::Binding(_) => &mut self.binding,
            Stage::Bound => &mut self.bound,
        }
    }
}
