//! A tournament over scores: the best one in as many steps as there are levels.

use crate::rng::Draw;

/// One cache queue of scores.
const FAN_OUT: usize = 32;

/// The score of a Node that does not fit.
pub(super) const INFEASIBLE: i16 = -1;

/// Each level has the winners of the one below, `FAN_OUT` of which compete for one place.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    levels: Vec<Vec<i16>>,
}

impl Tournament {
    pub fn new(mut leaves: Vec<i16>) -> Self {
        leaves.resize(leaves.len().max(1).next_multiple_of(FAN_OUT), INFEASIBLE);
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|below| below.len() > FAN_OUT) {
            let mut winners: Vec<i16> = below.chunks(FAN_OUT).map(highest).collect();
            winners.resize(winners.len().next_multiple_of(FAN_OUT), INFEASIBLE);
            levels.push(winners);
        }
        Self { levels }
    }

    /// How many there is place for.
    pub fn capacity(&self) -> usize {
        self.levels[0].len()
    }

    pub fn score(&self, leaf: usize) -> i16 {
        self.levels[0][leaf]
    }

    /// The highest score; `INFEASIBLE` when no Node is feasible.
    pub fn best(&self) -> i16 {
        self.levels.last().map_or(INFEASIBLE, |top| highest(top))
    }

    pub fn set(&mut self, leaf: usize, score: i16) {
        let mut before = self.levels[0][leaf];
        if before == score {
            return;
        }
        self.levels[0][leaf] = score;
        let (mut place, mut now) = (leaf, score);
        for level in 1..self.levels.len() {
            let block = place / FAN_OUT;
            let winner = self.levels[level][block];
            let new = if now >= winner {
                now
            } else if before == winner {
                highest(&self.levels[level - 1][block * FAN_OUT..][..FAN_OUT])
            } else {
                winner
            };
            if new == winner {
                return;
            }
            self.levels[level][block] = new;
            (place, now, before) = (block, new, winner);
        }
    }

    /// One of those with the highest score, with that score: the first by the draw on each level. `None` when no Node
    /// is feasible.
    pub fn any_best(&self, draw: Draw) -> Option<(usize, i16)> {
        let best = self.best();
        if best == INFEASIBLE {
            return None;
        }
        let mut block = 0;
        for (number, level) in self.levels.iter().enumerate().rev() {
            let scores = level.get(block * FAN_OUT..)?;
            let scores = &scores[..scores.len().min(FAN_OUT)];
            let is_best = |(place, score): (usize, &i16)| u32::from(*score == best) << place;
            let equals = scores.iter().enumerate().map(is_best).sum();
            block = block * FAN_OUT + first_of(equals, draw, number + 1)?;
        }
        Some((block, best))
    }
}

/// The bit that comes first by the draw.
pub(super) fn first_of(bits: u32, draw: Draw, salt: usize) -> Option<usize> {
    let (turn, mut left, mut first) = (draw.turn(salt), bits, None);
    while left != 0 {
        let number = left.trailing_zeros() as usize;
        let place = turn.place_of(number, FAN_OUT as u64);
        if first.is_none_or(|(best, _)| place < best) {
            first = Some((place, number));
        }
        left &= left - 1;
    }
    first.map(|(_, number)| number)
}

pub(super) fn highest(scores: &[i16]) -> i16 {
    scores.iter().copied().fold(INFEASIBLE, i16::max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    proptest! {
        #[test]
        fn the_winner_is_always_one_of_the_best(
            start in prop::collection::vec(-1..5_i16, 1..3000),
            changes in prop::collection::vec((any::<prop::sample::Index>(), -1..6_i16), 0..60),
            seed in any::<u64>(),
        ) {
            let mut scores = start.clone();
            let mut tree = Tournament::new(start);
            let mut rng = Rng::new(seed);
            for (index, score) in changes {
                let leaf = index.index(scores.len());
                scores[leaf] = score;
                tree.set(leaf, score);
                let best = highest(&scores);
                prop_assert_eq!(tree.best(), best);
                let winner = tree.any_best(rng.draw());
                prop_assert_eq!(winner.map_or(INFEASIBLE, |(winner, _)| scores[winner]), best);
            }
        }
    }
}
