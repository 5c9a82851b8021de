//! How good a Node is for a Pod, 0–100 each. To add one: a file here and a line in [`SCORES`].

mod balanced_allocation;
mod least_allocated;

use crate::filters::{Ask, Candidate};

struct Score {
    weight: i64,
    score: fn(Ask<'_>, Candidate<'_>) -> i64,
}

/// Weights as in kube-scheduler's default profile.
const SCORES: [Score; 2] = [
    Score { weight: 1, score: least_allocated::score },
    Score { weight: 1, score: balanced_allocation::score },
];

pub(crate) const SCORE_MAX: i64 = 100;

pub(crate) fn total(ask: Ask<'_>, candidate: Candidate<'_>) -> i64 {
    SCORES.iter().map(|entry| entry.weight * (entry.score)(ask, candidate)).sum()
}
