//! Chance that can be repeated.

/// SplitMix64: small, and good enough to choose crash points and to wander through clusters.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any of `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there must be something to choose from");
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Both ends included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// An entry that stands there twice is twice as likely.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Between `low` and `high` things.
    pub fn list<T>(
        &mut self,
        low: usize,
        high: usize,
        mut one: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        let length = self.between(low, high);
        (0..length).map(|_| one(self)).collect()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_chooses_the_same() {
        let choose = |seed| {
            let mut random = Random::new(seed);
            (0..5).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(choose(7), choose(7));
        assert_ne!(choose(7), choose(8));
    }
}
