//! What preemption would cost on each Node, so that one of the cheapest is found without a look at all of them.

use rules::Loss;

use super::rows::Slot;
use crate::rng::Rng;

/// A tree over all places: each knot knows the smallest loss below it, and how many have it.
#[derive(Debug)]
pub(super) struct Losses {
    /// `None`: preemption does not help there. As many as there are leaves, which is a power of two.
    of: Vec<Option<Loss>>,
    /// The knots; the root is 1, those below `i` are `2i` and `2i + 1`, and the last half are the leaves.
    knots: Vec<Knot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Knot {
    /// One with the smallest loss.
    slot: Slot,
    /// How many have it.
    ties: u32,
}

const NOBODY: Knot = Knot { slot: Slot::MAX, ties: 0 };

impl Losses {
    /// Without anybody yet.
    pub fn new(places: usize) -> Self {
        let leaves = places.max(1).next_power_of_two();
        Self { of: vec![None; leaves], knots: vec![NOBODY; leaves * 2] }
    }

    pub fn capacity(&self) -> usize {
        self.of.len()
    }

    pub fn get(&self, slot: Slot) -> Option<Loss> {
        self.of.get(slot as usize).copied().flatten()
    }

    /// Writes it down; `settle` or `settle_all` has to follow before anybody is chosen.
    pub fn put(&mut self, slot: Slot, loss: Option<Loss>) {
        let leaf = self.of.len() + slot as usize;
        self.of[slot as usize] = loss;
        self.knots[leaf] = if loss.is_some() { Knot { slot, ties: 1 } } else { NOBODY };
    }

    pub fn settle(&mut self, slot: Slot) {
        let mut knot = self.of.len() + slot as usize;
        while knot > 1 {
            knot /= 2;
            self.knots[knot] = self.better(self.knots[knot * 2], self.knots[knot * 2 + 1]);
        }
    }

    pub fn settle_all(&mut self) {
        for knot in (1..self.of.len()).rev() {
            self.knots[knot] = self.better(self.knots[knot * 2], self.knots[knot * 2 + 1]);
        }
    }

    fn better(&self, one: Knot, other: Knot) -> Knot {
        match (self.get(one.slot), self.get(other.slot)) {
            (None, _) => other,
            (_, None) => one,
            (Some(a), Some(b)) if a < b => one,
            (Some(a), Some(b)) if a > b => other,
            _ => Knot { slot: one.slot, ties: one.ties + other.ties },
        }
    }

    /// One of those with the smallest loss, by the seed.
    pub fn any_least(&self, rng: &mut Rng) -> Option<Slot> {
        let ties = self.knots[1].ties;
        (ties > 0).then(|| self.nth_least(rng.below(ties as usize)))
    }

    /// All of those with the smallest loss.
    #[cfg(test)]
    pub fn all_least(&self) -> Vec<Slot> {
        (0..self.knots[1].ties as usize).map(|nth| self.nth_least(nth)).collect()
    }

    /// By their places: whatever was known before, the same one is found.
    fn nth_least(&self, mut nth: usize) -> Slot {
        let least = self.get(self.knots[1].slot);
        let mut knot = 1;
        while knot < self.of.len() {
            let left = self.knots[knot * 2];
            let there = if self.get(left.slot) == least { left.ties as usize } else { 0 };
            knot *= 2;
            if nth >= there {
                nth -= there;
                knot += 1;
            }
        }
        self.knots[knot].slot
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.of.len() * (size_of::<Option<Loss>>() + 2 * size_of::<Knot>())
    }
}
