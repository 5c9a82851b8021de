//! Random choices that are the same on every machine and in every version of every crate.

/// SplitMix64: small, and good enough to wander through clusters.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Seeds are neighbours. Spread out, their sequences do not overlap.
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Both ends included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// An entry that stands there twice is twice as likely.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        let place = self.below(choices.len() as u64);
        choices[usize::try_from(place).expect("a place in a slice")].clone()
    }

    /// Between `low` and `high` things.
    pub fn list<T>(&mut self, low: u64, high: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = self.between(low, high);
        (0..length).map(|_| one(self)).collect()
    }
}
