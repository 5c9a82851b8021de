//! Chance that repeats: numbers that depend on nothing but their arguments.

/// A source of noise for one quantity of one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64, object: &str, quantity: &str) -> Self {
        // FNV-1a over both names, a separator between them.
        let bytes = object.bytes().chain([0]).chain(quantity.bytes());
        let named = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(mixed(seed ^ named))
    }

    /// The same quantity of the `index`-th part of the object.
    pub(super) fn part(self, index: u32) -> Self {
        Self(mixed(self.0 ^ (u64::from(index) + 1)))
    }

    /// A constant of this source, 0 to 1.
    pub(super) fn constant(self) -> f64 {
        unit(mixed(self.0))
    }

    /// Moves between 0 and 1, a new goal every `period_s`, without jumps.
    pub(super) fn at(self, seconds: f64, period_s: f64) -> f64 {
        let position = seconds / period_s;
        let (step, fraction) = (position.floor(), position - position.floor());
        let goal = |step: f64| unit(mixed(self.0 ^ step.to_bits()));
        let eased = fraction * fraction * (3.0 - 2.0 * fraction);
        goal(step) + (goal(step + 1.0) - goal(step)) * eased
    }
}

/// The finalizer of SplitMix64.
fn mixed(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The upper 53 bits as a fraction: every one is exact in an f64.
#[allow(clippy::cast_precision_loss)]
fn unit(x: u64) -> f64 {
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_repeats_and_differs_by_name() {
        let a = Noise::new(1, "cor-1", "temp");
        assert_eq!(a.at(1234.5, 30.0).to_bits(), a.at(1234.5, 30.0).to_bits());
        for other in [
            Noise::new(2, "cor-1", "temp"),
            Noise::new(1, "cor-2", "temp"),
            Noise::new(1, "cor-1", "ber"),
            a.part(0),
        ] {
            assert_ne!(a.constant().to_bits(), other.constant().to_bits());
        }
    }

    #[test]
    fn noise_stays_in_its_range_and_does_not_jump() {
        let noise = Noise::new(3, "x", "y");
        let mut last = noise.at(0.0, 30.0);
        for step in 1..10_000 {
            let now = noise.at(f64::from(step) * 0.1, 30.0);
            assert!((0.0..=1.0).contains(&now));
            assert!((now - last).abs() < 0.02, "jumped from {last} to {now}");
            last = now;
        }
    }
}
