//! Which PodDisruptionBudgets have changed: they affect the choice of victims, and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{ClusterPod, LabelSelector, PodDisruptionBudget};
use rules::protects;

/// A budget that is another than it was.
#[derive(Debug)]
pub(super) struct BudgetChange {
    namespace: Arc<str>,
    /// Before and after.
    selectors: Vec<LabelSelector>,
}

impl BudgetChange {
    pub fn concerns(&self, pod: &ClusterPod) -> bool {
        self.namespace == *pod.namespace() && self.selectors.iter().any(|it| protects(it, pod))
    }
}

#[derive(Debug, Default)]
pub(super) struct BudgetLog {
    entries: VecDeque<BudgetChange>,
    dropped: u64,
}

/// More changes than this are slower to follow than all Nodes are to look at.
const ENTRIES_MAX: usize = 64;

impl BudgetLog {
    pub fn push(
        &mut self,
        before: Option<&PodDisruptionBudget>,
        after: Option<&PodDisruptionBudget>,
    ) {
        let Some(some) = after.or(before) else { return };
        let namespace = some.key.namespace.clone();
        let mut selectors: Vec<LabelSelector> =
            [before, after].into_iter().flatten().map(|it| it.selector.clone()).collect();
        selectors.dedup();
        self.entries.push_back(BudgetChange { namespace, selectors });
        if self.entries.len() > ENTRIES_MAX {
            self.entries.pop_front();
            self.dropped += 1;
        }
    }

    pub fn end(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    /// What has changed since; `None` when that is no longer known.
    pub fn since(&self, position: u64) -> Option<impl Iterator<Item = &BudgetChange> + Clone> {
        let start = usize::try_from(position.checked_sub(self.dropped)?).ok()?;
        Some(self.entries.range(start.min(self.entries.len())..))
    }
}
