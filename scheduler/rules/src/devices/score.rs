//! How much an allocation is what its claim would rather have.

use std::collections::BTreeSet;

use model::{Allocation, ClaimSpec, RequestAlternatives};

/// How many alternatives a request may have.
const ALTERNATIVES_MAX: i64 = 8;

/// The more, the earlier the alternatives are that were chosen. Requests without alternatives give nothing.
pub fn allocation_score(spec: &ClaimSpec, allocation: &Allocation) -> i64 {
    let chosen = |request: &str, alternative: &str| {
        let mut names = allocation.devices.iter().map(|device| device.request.split_once('/'));
        names.any(|name| name == Some((request, alternative)))
    };
    let mut score = 0;
    for request in &spec.requests {
        let RequestAlternatives::FirstAvailable(alternatives) = &request.alternatives else {
            continue;
        };
        for (worth, alternative) in (0..=ALTERNATIVES_MAX).rev().zip(alternatives) {
            if chosen(&request.name, &alternative.name) {
                score += worth;
            }
        }
    }
    score
}

/// What [`allocation_score`] can be.
pub fn possible_scores(spec: &ClaimSpec) -> BTreeSet<i64> {
    let mut scores: BTreeSet<i64> = [0].into();
    for request in &spec.requests {
        let RequestAlternatives::FirstAvailable(alternatives) = &request.alternatives else {
            continue;
        };
        let each = (0..=ALTERNATIVES_MAX).rev().take(alternatives.len());
        scores = scores.iter().flat_map(|it| each.clone().map(move |worth| it + worth)).collect();
    }
    scores
}
