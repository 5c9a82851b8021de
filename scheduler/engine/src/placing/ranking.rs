//! Who is the best of many Nodes, for which their scores need not be kept: each block of Nodes has a bound that none of
//! them exceeds, and only of the blocks that could win, the Nodes are scored.
//!
//! A Node that changes casts doubt on the bound of its block, or raises it. That takes one line of the cache however
//! many Nodes there are; most blocks in doubt are never looked at before the next change.

use std::ops::Range;

use super::tree::{OUT, Tournament, any_of, highest};
use crate::rng::Draw;

/// Nodes in a block.
pub(super) const BLOCK: usize = 32;

/// The scores of a block.
pub(super) type Scores = [i16; BLOCK];

#[derive(Debug)]
pub(super) struct Ranking {
    bounds: Tournament,
    /// Blocks whose best Node may be worse than their bound.
    in_doubt: Vec<bool>,
    nodes: usize,
}

/// Where scores come from: those of these Nodes are written to the beginning.
pub(super) trait Score {
    fn write(&self, nodes: Range<usize>, scores: &mut [i16]);
}

impl Ranking {
    pub fn new(nodes: usize, score: &impl Score) -> Self {
        let mut scores = [OUT; BLOCK];
        let starts = (0..nodes).step_by(BLOCK);
        let bounds: Vec<i16> =
            starts.map(|start| best_in(start, nodes, score, &mut scores)).collect();
        let bounds = Tournament::new(bounds);
        Self { in_doubt: vec![false; bounds.capacity()], bounds, nodes }
    }

    /// How many Nodes it ranks.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The Node has this score now.
    pub fn changed(&mut self, node: usize, score: i16) {
        let block = node / BLOCK;
        let bound = self.bounds.score(block);
        self.in_doubt[block] = score < bound;
        if score > bound {
            self.bounds.set(block, score);
        }
    }

    /// One of the best, by the draw, and its score. The same whichever blocks are in doubt.
    pub fn any_best(&mut self, draw: Draw, score: &impl Score) -> Option<(usize, i16)> {
        loop {
            let (block, bound) = self.bounds.any_best(draw)?;
            let (start, mut scores) = (block * BLOCK, [OUT; BLOCK]);
            let best = best_in(start, self.nodes, score, &mut scores);
            self.in_doubt[block] = false;
            if best == bound {
                return any_of(&scores, best, draw, 0).map(|place| (start + place, best));
            }
            self.bounds.set(block, best);
        }
    }

    /// The score of the best; `OUT` when nobody is in the running.
    pub fn best(&mut self, draw: Draw, score: &impl Score) -> i16 {
        loop {
            let Some((block, bound)) = self.bounds.any_best(draw) else { return OUT };
            if !self.in_doubt[block] {
                return bound;
            }
            let best = best_in(block * BLOCK, self.nodes, score, &mut [OUT; BLOCK]);
            self.in_doubt[block] = false;
            self.bounds.set(block, best);
        }
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.in_doubt.len() * 3
    }
}

fn best_in(start: usize, nodes: usize, score: &impl Score, scores: &mut Scores) -> i16 {
    let end = nodes.min(start + BLOCK);
    let scores = &mut scores[..end.saturating_sub(start)];
    score.write(start..end, scores);
    highest(scores)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    impl Score for Vec<i16> {
        fn write(&self, nodes: Range<usize>, scores: &mut [i16]) {
            scores.copy_from_slice(&self[nodes]);
        }
    }

    proptest! {
        #[test]
        fn the_winner_is_the_same_as_if_it_had_just_been_made(
            start in prop::collection::vec(-1..5_i16, 1..3000),
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), -1..6_i16, any::<bool>()),
                0..60,
            ),
            seed in any::<u64>(),
        ) {
            let mut scores = start;
            let mut ranking = Ranking::new(scores.len(), &scores);
            let mut rng = Rng::new(seed);
            for (index, score, is_asked) in changes {
                let node = index.index(scores.len());
                scores[node] = score;
                ranking.changed(node, score);
                if !is_asked {
                    continue;
                }
                let draw = rng.draw();
                let winner = ranking.any_best(draw, &scores);
                prop_assert_eq!(winner, Ranking::new(scores.len(), &scores).any_best(draw, &scores));
                prop_assert_eq!(winner.map_or(OUT, |it| scores[it.0]), highest(&scores));
                prop_assert_eq!(ranking.best(draw, &scores), highest(&scores));
            }
        }
    }
}
