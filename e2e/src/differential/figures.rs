//! How a comparison went.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::kube_side::Outcome;

/// Of all cases together.
#[derive(Debug, Default)]
pub struct Figures {
    pub cases: usize,
    /// One entry for each case that differs in a way that is not allowed.
    pub differing: Vec<String>,
    /// Differences that are allowed, by quirk; and cases that differ by a known fault of kube-scheduler, by that.
    pub allowed: BTreeMap<&'static str, usize>,
    /// How often our scheduler was asked once more, because its first answer differed.
    pub asked_again: usize,
    /// How often both were tried once more.
    pub tried_again: usize,
    /// Pods that were behind a gate first.
    pub gated: usize,
    /// How kube-scheduler ended the cases.
    pub endings: BTreeMap<&'static str, usize>,
    /// Without the start of the servers.
    pub took: Duration,
}

impl Figures {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.cases += 1;
        *self.endings.entry(ending(outcome)).or_default() += 1;
    }
}

fn ending(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Placed { waits_for_volumes: true, .. } => "placed, with volumes to bind",
        Outcome::Placed { totals, .. } if totals.is_empty() => "placed, on the only Node",
        Outcome::Placed { .. } => "placed, by score",
        Outcome::Failed { .. } => "failed",
        Outcome::Rejected { preempted: None, .. } => "rejected",
        Outcome::Rejected { preempted: Some(preempted), .. } => match preempted.victims.len() {
            0 => "nominated, no Pod to delete",
            1 => "preempted 1 Pod",
            2 => "preempted 2 Pods",
            _ => "preempted 3 or more Pods",
        },
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        writeln!(
            f,
            "{} cases in {seconds:.0} s: {} differ; ours was asked again {} times, both were tried \
             again {} times",
            self.cases,
            self.differing.len(),
            self.asked_again,
            self.tried_again,
        )?;
        for (ending, count) in &self.endings {
            writeln!(f, "{count:>7} {ending}")?;
        }
        writeln!(f, "{:>7} behind a gate first", self.gated)?;
        for (quirk, count) in &self.allowed {
            writeln!(f, "{count:>7} allowed: {quirk}")?;
        }
        Ok(())
    }
}
