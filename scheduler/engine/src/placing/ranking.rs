//! The best of many Nodes, without keeping their scores: each block of Nodes has a bound that none of them exceeds, and
//! a bit for each Node that may reach it. Only the Nodes of the best block are scored, one by one.
//!
//! A Node that changes for the worse is not even noted: whether it still reaches the bound is found out when it is about
//! to win. So following a change takes a look at one bound, however many Nodes there are.

use std::cmp::Ordering;
use std::ops::Range;

use super::tree::{INFEASIBLE, Tournament, first_of, highest};
use crate::rng::Draw;

/// Nodes in a block: as many as a [`Reaching`] has bits.
pub(super) const BLOCK: usize = 32;

/// Changes that are looked up together.
pub(super) const BATCH: usize = 32;

/// The Nodes of a block that may reach its bound, one bit each; the others do not. 0: the best of them is not known.
type Reaching = u32;

#[derive(Debug)]
pub(super) struct Ranking {
    bounds: Tournament,
    reaching: Vec<Reaching>,
    nodes: usize,
}

/// Where scores come from.
pub(super) trait Score {
    fn of(&self, node: usize) -> i16;

    /// The same of several, that lie beside each other.
    fn write(&self, nodes: Range<usize>, scores: &mut [i16]);
}

impl Ranking {
    pub fn new(nodes: usize, score: &impl Score) -> Self {
        let starts = (0..nodes).step_by(BLOCK);
        let (bounds, reaching): (Vec<i16>, Vec<Reaching>) =
            starts.map(|start| best_in(start, nodes, score)).unzip();
        Self { bounds: Tournament::new(bounds), reaching, nodes }
    }

    /// How many Nodes it ranks.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// These Nodes have these scores now, the last that is given holds. At most [`BATCH`].
    pub fn changed(&mut self, changes: &[(usize, i16)]) {
        // All are read before any is compared: memory is then asked for all of them at the same time.
        let mut found = [(0, 0); BATCH];
        for ((bound, reaching), (node, _)) in found.iter_mut().zip(changes) {
            let block = node / BLOCK;
            (*bound, *reaching) = (self.bounds.score(block), self.reaching[block]);
        }
        for ((bound, reaching), (node, score)) in found.iter().zip(changes) {
            let bit = 1 << (node % BLOCK);
            if score > bound || score == bound && reaching & bit == 0 {
                self.rose(*node, *score);
            }
        }
    }

    fn rose(&mut self, node: usize, score: i16) {
        let (block, bit) = (node / BLOCK, 1 << (node % BLOCK));
        // Another Node of the block may have risen just before.
        let bound = self.bounds.score(block);
        match score.cmp(&bound) {
            Ordering::Less => {}
            Ordering::Equal => self.reaching[block] |= bit,
            Ordering::Greater => {
                self.reaching[block] = bit;
                self.bounds.set(block, score);
            }
        }
    }

    /// One of the best, by the draw. The same whatever has been found out before.
    pub fn any_best(&mut self, draw: Draw, score: &impl Score) -> Option<usize> {
        self.best_with_score(draw, score).map(|(node, _)| node)
    }

    /// The score of the best; `INFEASIBLE` when no Node is feasible.
    pub fn best(&mut self, draw: Draw, score: &impl Score) -> i16 {
        self.best_with_score(draw, score).map_or(INFEASIBLE, |(_, best)| best)
    }

    fn best_with_score(&mut self, draw: Draw, score: &impl Score) -> Option<(usize, i16)> {
        loop {
            let (block, bound) = self.bounds.any_best(draw)?;
            while let Some(place) = first_of(self.reaching[block], draw, 0) {
                let node = block * BLOCK + place;
                if score.of(node) == bound {
                    return Some((node, bound));
                }
                self.reaching[block] &= !(1 << place);
            }
            let (best, reaching) = best_in(block * BLOCK, self.nodes, score);
            self.reaching[block] = reaching;
            self.bounds.set(block, best);
        }
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.reaching.len() * size_of::<Reaching>() + self.bounds.capacity() * size_of::<i16>()
    }
}

/// The highest score in a block, and the Nodes that have it.
fn best_in(start: usize, nodes: usize, score: &impl Score) -> (i16, Reaching) {
    let mut scores = [INFEASIBLE; BLOCK];
    let end = nodes.min(start + BLOCK);
    score.write(start..end, &mut scores[..end.saturating_sub(start)]);
    let best = highest(&scores);
    let reaches = |(place, score): (usize, &i16)| Reaching::from(*score == best) << place;
    (best, scores.iter().enumerate().map(reaches).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    impl Score for Vec<i16> {
        fn of(&self, node: usize) -> i16 {
            self[node]
        }

        fn write(&self, nodes: Range<usize>, scores: &mut [i16]) {
            scores.copy_from_slice(&self[nodes]);
        }
    }

    proptest! {
        #[test]
        fn the_winner_is_the_same_as_if_it_had_just_been_made(
            start in prop::collection::vec(-1..5_i16, 1..3000),
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), -1..6_i16, prop::bool::weighted(0.2)),
                0..200,
            ),
            seed in any::<u64>(),
        ) {
            let mut scores = start;
            let mut ranking = Ranking::new(scores.len(), &scores);
            let (mut rng, mut pending) = (Rng::new(seed), Vec::new());
            for (index, score, is_asked) in changes {
                let node = index.index(scores.len());
                scores[node] = score;
                pending.push((node, score));
                if !is_asked && pending.len() < BATCH {
                    continue;
                }
                ranking.changed(&pending);
                pending.clear();
                let draw = rng.draw();
                let winner = ranking.any_best(draw, &scores);
                prop_assert_eq!(winner, Ranking::new(scores.len(), &scores).any_best(draw, &scores));
                prop_assert_eq!(winner.map_or(INFEASIBLE, |it| scores[it]), highest(&scores));
                prop_assert_eq!(ranking.best(draw, &scores), highest(&scores));
            }
        }
    }
}
