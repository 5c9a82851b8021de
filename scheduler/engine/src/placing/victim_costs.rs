//! What preemption would cost on each Node, so that one of the cheapest is found without a look at all of them.

use rules::VictimCost;

use super::rows::Slot;
use crate::rng::Rng;

/// A tree over all slots: each of its nodes has the lowest cost below it, and how many Nodes have that.
#[derive(Debug)]
pub(super) struct VictimCosts {
    /// `None`: preemption does not help there. As many as there are leaves, which is a power of two.
    of: Vec<Option<VictimCost>>,
    /// The root is 1, those below `i` are `2i` and `2i + 1`, and the last half are the leaves.
    tree: Vec<TreeNode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeNode {
    /// One of the cheapest.
    slot: Slot,
    /// How many have it.
    ties: u32,
}

const EMPTY: TreeNode = TreeNode { slot: Slot::MAX, ties: 0 };

impl VictimCosts {
    /// Without any cost yet.
    pub fn new(places: usize) -> Self {
        let leaves = places.max(1).next_power_of_two();
        Self { of: vec![None; leaves], tree: vec![EMPTY; leaves * 2] }
    }

    pub fn capacity(&self) -> usize {
        self.of.len()
    }

    pub fn get(&self, slot: Slot) -> Option<VictimCost> {
        self.of.get(slot as usize).copied().flatten()
    }

    /// Writes it down; `settle` or `settle_all` has to follow before a Node is chosen.
    pub fn put(&mut self, slot: Slot, cost: Option<VictimCost>) {
        let leaf = self.of.len() + slot as usize;
        self.of[slot as usize] = cost;
        self.tree[leaf] = if cost.is_some() { TreeNode { slot, ties: 1 } } else { EMPTY };
    }

    pub fn settle(&mut self, slot: Slot) {
        let mut at = self.of.len() + slot as usize;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.better(self.tree[at * 2], self.tree[at * 2 + 1]);
        }
    }

    pub fn settle_all(&mut self) {
        for at in (1..self.of.len()).rev() {
            self.tree[at] = self.better(self.tree[at * 2], self.tree[at * 2 + 1]);
        }
    }

    fn better(&self, one: TreeNode, other: TreeNode) -> TreeNode {
        match (self.get(one.slot), self.get(other.slot)) {
            (None, _) => other,
            (_, None) => one,
            (Some(a), Some(b)) if a < b => one,
            (Some(a), Some(b)) if a > b => other,
            _ => TreeNode { slot: one.slot, ties: one.ties + other.ties },
        }
    }

    /// One of the cheapest, by the seed.
    pub fn any_cheapest(&self, rng: &mut Rng) -> Option<Slot> {
        let ties = self.tree[1].ties;
        (ties > 0).then(|| self.nth_cheapest(rng.below(ties as usize)))
    }

    /// All of the cheapest.
    #[cfg(test)]
    pub fn all_cheapest(&self) -> Vec<Slot> {
        (0..self.tree[1].ties as usize).map(|nth| self.nth_cheapest(nth)).collect()
    }

    /// By their places: whatever was known before, the same one is found.
    fn nth_cheapest(&self, mut nth: usize) -> Slot {
        let least = self.get(self.tree[1].slot);
        let mut at = 1;
        while at < self.of.len() {
            let left = self.tree[at * 2];
            let there = if self.get(left.slot) == least { left.ties as usize } else { 0 };
            at *= 2;
            if nth >= there {
                nth -= there;
                at += 1;
            }
        }
        self.tree[at].slot
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.of.len() * (size_of::<Option<VictimCost>>() + 2 * size_of::<TreeNode>())
    }
}
