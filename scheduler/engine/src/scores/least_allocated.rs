//! Prefers the Node that has the larger share of CPU and memory left (NodeResourcesFit,
//! strategy LeastAllocated).

use super::SCORE_MAX;
use crate::filters::{Ask, Candidate};

pub(super) fn score(ask: Ask<'_>, candidate: Candidate<'_>) -> i64 {
    let Candidate { node, used } = candidate;
    let (asked, taken) = (&ask.shape.scored_requests, &used.scored_requests);
    let shares = [
        (node.allocatable.cpu_milli, taken.cpu_milli.saturating_add(asked.cpu_milli)),
        (node.allocatable.memory_bytes, taken.memory_bytes.saturating_add(asked.memory_bytes)),
    ];
    let (mut sum, mut resources) = (0, 0);
    for (has, wanted) in shares.into_iter().filter(|(has, _)| *has > 0) {
        sum += if wanted > has { 0 } else { (has - wanted) * SCORE_MAX / has };
        resources += 1;
    }
    if resources == 0 { 0 } else { sum / resources }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::NodeUse;
    use crate::testkit::{NodeBuilder, shape};

    #[test]
    fn scores_the_share_that_stays_free_rounded_down() {
        let node = NodeBuilder::new("n").cpu_milli(3000).memory_bytes(1000).build();
        let (shape, used) = (shape(1000, 100), NodeUse::default());
        let ask = Ask { shape: &shape, objects: &[] };
        // CPU: 2000 × 100 / 3000 = 66, memory: 90, mean 78.
        assert_eq!(score(ask, Candidate { node: &node, used: &used }), 78);
    }

    #[test]
    fn an_overfull_resource_scores_nothing() {
        let node = NodeBuilder::new("n").cpu_milli(500).memory_bytes(1000).build();
        let (shape, used) = (shape(1000, 100), NodeUse::default());
        let ask = Ask { shape: &shape, objects: &[] };
        assert_eq!(score(ask, Candidate { node: &node, used: &used }), 45);
    }
}
