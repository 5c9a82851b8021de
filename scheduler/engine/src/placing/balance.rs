//! How even the use of CPU and memory is: NodeResourcesBalancedAllocation of Kubernetes 1.36, for the two
//! resources that it looks at unless told otherwise.

/// 100 when both are used to the same share; less the further they are apart.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler computes in doubles too, and the result is between 0 and 100"
)]
pub(super) fn balance(allocatable: [i64; 3], taken: [i64; 3]) -> i64 {
    let [cpu, memory, _] = allocatable;
    if cpu == 0 || memory == 0 {
        return 100;
    }
    let share = |taken: i64, of: i64| (taken as f64 / of as f64).min(1.0);
    let deviation = ((share(taken[0], cpu) - share(taken[1], memory)) / 2.0).abs();
    ((1.0 - deviation) * 100.0) as i64
}

/// What evening out is worth.
pub(super) fn balanced_score(before: i64, with_pod: i64) -> i64 {
    50 + 50_i64.saturating_add(with_pod.saturating_sub(before)) / 2
}
