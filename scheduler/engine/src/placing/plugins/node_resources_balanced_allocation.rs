//! How even the use of CPU and memory is, with the formula of Kubernetes 1.36; for the two resources that it looks at
//! by default.

use std::sync::Arc;

use model::Resources;

use super::super::rows::{Extras, Row, three};
use super::node_resources_fit::{Sums, uses};

#[derive(Debug)]
pub(in crate::placing) struct BalancedScore {
    pub(in crate::placing) weight: i64,
    pub(in crate::placing) asked: Resources,
    /// None: CPU and memory.
    pub(in crate::placing) resources: Option<Vec<Arc<str>>>,
}

impl BalancedScore {
    pub(in crate::placing) fn score(&self, row: &Row, extras: &Extras) -> i64 {
        let Some(resources) = &self.resources else {
            let mut with_pod = row.requested;
            for (sum, asked) in with_pod.iter_mut().zip(three(&self.asked)) {
                *sum = sum.saturating_add(asked);
            }
            return balanced_score(row.balance, balance(row.allocatable, with_pod));
        };
        let uses = uses(row, extras, resources.iter(), &self.asked, Sums::AsRequested);
        rules::balanced_score(&uses)
    }
}

/// 100 when both are used to the same share; less the further they are apart.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler computes in doubles too, and the result is between 0 and 100"
)]
pub(in crate::placing) fn balance(allocatable: [i64; 3], taken: [i64; 3]) -> i64 {
    let [cpu, memory, _] = allocatable;
    if cpu == 0 || memory == 0 {
        return 100;
    }
    let share = |taken: i64, of: i64| (taken as f64 / of as f64).min(1.0);
    let deviation = ((share(taken[0], cpu) - share(taken[1], memory)) / 2.0).abs();
    ((1.0 - deviation) * 100.0) as i64
}

/// What evening out is worth.
pub(in crate::placing) fn balanced_score(before: i64, with_pod: i64) -> i64 {
    50 + 50_i64.saturating_add(with_pod.saturating_sub(before)) / 2
}
