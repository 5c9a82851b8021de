//! Prefers the Node on which the Pod evens out the use of CPU and memory
//! (NodeResourcesBalancedAllocation, formula of Kubernetes 1.36).

use super::SCORE_MAX;
use crate::filters::{Ask, Candidate};

pub(super) fn score(ask: Ask<'_>, candidate: Candidate<'_>) -> i64 {
    let Candidate { node, used } = candidate;
    let (asked, taken) = (&ask.shape.requests, &used.requests);
    if asked.cpu_milli == 0 && asked.memory_bytes == 0 {
        return 0;
    }
    let cpu = (node.allocatable.cpu_milli, taken.cpu_milli, asked.cpu_milli);
    let memory = (node.allocatable.memory_bytes, taken.memory_bytes, asked.memory_bytes);
    let with = balance(fraction(cpu, true), fraction(memory, true));
    let without = balance(fraction(cpu, false), fraction(memory, false));
    SCORE_MAX / 2 + (SCORE_MAX / 2 + with - without) / 2
}

/// The used share of a resource, at most 1; `None` when the Node has none of it.
fn fraction((has, taken, asked): (i64, i64, i64), with_pod: bool) -> Option<f64> {
    let used = if with_pod { taken.saturating_add(asked) } else { taken };
    #[expect(clippy::cast_precision_loss, reason = "kube-scheduler divides as doubles too")]
    (has > 0).then(|| (used as f64 / has as f64).min(1.0))
}

/// 100 when both shares are equal; less the further they are apart.
fn balance(cpu: Option<f64>, memory: Option<f64>) -> i64 {
    let deviation = match (cpu, memory) {
        (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
        _ => 0.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "a number between 0 and 100")]
    let score = ((1.0 - deviation) * 100.0) as i64;
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::NodeUse;
    use crate::testkit::{NodeBuilder, shape};

    fn score_of(cpu: i64, memory: i64, taken: &NodeUse) -> i64 {
        let node = NodeBuilder::new("n").cpu_milli(1000).memory_bytes(1000).build();
        let shape = shape(cpu, memory);
        score(Ask { shape: &shape, objects: &[] }, Candidate { node: &node, used: taken })
    }

    #[test]
    fn a_pod_that_evens_out_the_node_scores_higher() {
        let mut lopsided = NodeUse::default();
        lopsided.add(&shape(400, 0));
        // Before |0.4 − 0| / 2 = 0.2 → 80; with 400 of memory even → 100.
        assert_eq!(score_of(0, 400, &lopsided), 50 + (50 + 100 - 80) / 2);
        // A Pod of CPU only makes it worse: |0.8 − 0| / 2 = 0.4 → 60.
        assert_eq!(score_of(400, 0, &lopsided), 50 + (50 + 60 - 80) / 2);
    }

    #[test]
    fn a_pod_without_requests_is_not_scored() {
        assert_eq!(score_of(0, 0, &NodeUse::default()), 0);
    }
}
