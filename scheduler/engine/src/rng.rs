use serde::{Deserialize, Serialize};

/// SplitMix64: small, fast, and the same everywhere. It only breaks ties.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// For one choice among equals, however many.
    pub fn draw(&mut self) -> Draw {
        Draw(self.next())
    }

    /// A random UUID (version 4). Another process begins with the same seed, and must not draw the same for another owner.
    pub fn uuid_for(&mut self, owner: &str) -> String {
        let fold = |seed: u64| owner.bytes().fold(seed, |it, byte| mixed(it ^ u64::from(byte)));
        let (high, low) = (fold(self.next()), fold(self.next()));
        let version = (high & !0xf000) | 0x4000;
        let variant = (low & !(0b11 << 62)) | (0b10 << 62);
        let digits = format!("{version:016x}{variant:016x}");
        let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
        groups.map(|group| &digits[group]).join("-")
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state)
    }
}

/// A random order of everything that has a number. The first among some is still the first when others
/// drop out, so it does not matter in which order, or how late, infeasible ones are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// Where the number stands in this order. No two stand at the same place.
    pub fn place_of(self, number: u64) -> u64 {
        mixed(self.0 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The same for numbers below a power of two, in fewer steps; another order for each `salt`.
    pub fn turn(self, salt: usize) -> Turn {
        let bits = mixed(self.0.wrapping_add(salt as u64));
        Turn { step: bits | 1, offset: bits >> 32 }
    }
}

/// An order of the numbers below a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    step: u64,
    offset: u64,
}

impl Turn {
    /// Where the number stands, of so many. `of` is a power of two.
    pub fn place_of(self, number: usize, of: u64) -> u64 {
        (number as u64).wrapping_mul(self.step).wrapping_add(self.offset) & (of - 1)
    }
}

fn mixed(state: u64) -> u64 {
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_process_draws_other_uuids_for_other_owners() {
        let (mut before, mut restarted) = (Rng::new(0), Rng::new(0));
        let mut drawn = vec![before.uuid_for("claim-a"), before.uuid_for("claim-a")];
        drawn.extend([restarted.uuid_for("claim-b"), restarted.uuid_for("claim-b")]);
        for uuid in &drawn {
            let lengths: Vec<_> = uuid.split('-').map(str::len).collect();
            assert_eq!((lengths.as_slice(), &uuid[14..15]), (&[8, 4, 4, 4, 12][..], "4"), "{uuid}");
        }
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 4);
    }

    #[test]
    fn each_of_some_equals_is_first_about_as_often() {
        let equals = [3_usize, 4, 17, 30];
        let (mut rng, mut wins, mut quick_wins) = (Rng::new(7), [0; 4], [0; 4]);
        for _ in 0..4000 {
            let draw = rng.draw();
            let first = (0..4).min_by_key(|it| draw.place_of(equals[*it] as u64)).unwrap();
            wins[first] += 1;
            let turn = draw.turn(1);
            let first = (0..4).min_by_key(|it| turn.place_of(equals[*it], 32)).unwrap();
            quick_wins[first] += 1;
        }
        for wins in wins.into_iter().chain(quick_wins) {
            assert!((700..1300).contains(&wins), "{wins}");
        }
    }
}
