//! What one evaluation may take.

use crate::value::Failure;

/// As much as kube-scheduler grants. One step is one node, one element or [`BYTES_PER_STEP`] bytes.
pub(crate) const COST_MAX: u64 = 1_000_000;
const BYTES_PER_STEP: usize = 10;

#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: COST_MAX }
    }
}

impl Budget {
    pub fn spend(&mut self, steps: usize) -> Result<(), Failure> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or_else(|| Failure::fatal("actual cost limit exceeded"))
    }

    pub fn spend_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.spend(bytes / BYTES_PER_STEP + 1)
    }
}
