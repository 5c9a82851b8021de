//! The score of a Node for what most Pods ask for, without a division: CPU, memory, storage and a place; the more free
//! the better, and the more even the better. It is what [`super::node_fit`] computes by parts, to the last digit.

use super::plugins::node_resources_balanced_allocation::{balance, balanced_score};
use super::rows::{ORDINARY_MAX, Row};
use super::tree::INFEASIBLE;

#[derive(Debug)]
pub(super) struct Quick {
    /// What must be there of CPU, memory and storage; less than anything where nothing is asked for.
    needed: [i64; 3],
    fit_weight: i64,
    /// With defaults where nothing is asked for.
    scored: [i64; 2],
    weights: [i64; 2],
    /// The weight of being even, and what would be taken.
    evened: Option<(i64, [i64; 3])>,
}

impl Quick {
    /// `None`: amounts so odd that sums could overflow.
    pub fn new(
        asked: [i64; 3],
        (fit_weight, scored): (i64, [i64; 3]),
        weights: [i64; 2],
        evened: Option<(i64, [i64; 3])>,
    ) -> Option<Self> {
        let taken = evened.map_or([0; 3], |(_, taken)| taken);
        let mut amounts = asked.iter().chain(&scored).chain(&taken);
        let is_ordinary = amounts.all(|it| (0..ORDINARY_MAX).contains(it));
        let needed = asked.map(|it| if it > 0 { it } else { i64::MIN });
        let scored = [scored[0], scored[1]];
        is_ordinary.then_some(Self { needed, fit_weight, scored, weights, evened })
    }

    /// Of a row that is ordinary.
    #[inline]
    pub fn score(&self, row: &Row) -> i16 {
        let has =
            |index: usize| self.needed[index] <= row.allocatable[index] - row.requested[index];
        if !(row.pods < row.pods_max && has(0) && has(1) && has(2)) {
            return INFEASIBLE;
        }
        let free = |index: usize| {
            let with_pod = row.requested_in_scores[index].saturating_add(self.scored[index]);
            percent(row.allocatable[index] - with_pod, row.allocatable[index], row.inverse[index])
        };
        let [cpu, memory] = self.weights;
        let fit = if cpu == memory {
            (free(0) + free(1)) >> 1
        } else {
            (free(0) * cpu + free(1) * memory) / (cpu + memory)
        };
        let mut score = self.fit_weight * fit;
        if let Some((weight, taken)) = &self.evened {
            score += weight * balanced_score(row.balance, evenness(row, *taken));
        }
        i16::try_from(score).unwrap_or(i16::MAX)
    }
}

/// How even the use is with what would be taken. The quick way is off by a few units in the last place: where that
/// could matter, the plain rules' formula decides.
#[expect(clippy::cast_precision_loss, reason = "kube-scheduler computes in doubles too")]
#[inline]
fn evenness(row: &Row, taken: [i64; 3]) -> i64 {
    /// Far more than a few units in the last place of a number up to 100.
    const DOUBT: f64 = 1e-9;
    let share = |index: usize| {
        let with_pod = row.requested[index].saturating_add(taken[index]);
        (with_pod as f64 * row.inverse[index]).min(1.0)
    };
    let deviation = ((share(0) - share(1)) * 0.5).abs();
    let evenness = (1.0 - deviation) * 100.0;
    let nearest = nearest(evenness);
    let rest = evenness - nearest as f64;
    if rest.abs() > DOUBT {
        return nearest - i64::from(rest < 0.0);
    }
    let mut with_pod = row.requested;
    for (sum, taken) in with_pod.iter_mut().zip(taken) {
        *sum = sum.saturating_add(taken);
    }
    balance(row.allocatable, with_pod)
}

/// `100 × part / whole`, rounded down; 0 when the part is negative. Both below [`ORDINARY_MAX`], and `inverse` is one
/// divided by the whole: the nearest number is one too high at most, which is put right.
#[expect(clippy::cast_precision_loss, reason = "what is lost is put right")]
#[inline]
fn percent(part: i64, whole: i64, inverse: f64) -> i64 {
    let product = part.max(0) * 100;
    let quotient = nearest(product as f64 * inverse);
    quotient - i64::from(quotient * whole > product)
}

/// The nearest whole number to one between 0 and 100, by how doubles are written: a cast would first have to see whether
/// it fits.
#[inline]
fn nearest(number: f64) -> i64 {
    /// Doubles from here on have no digits behind the point, and those of the number are their last bits.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    ((number + WHOLE).to_bits() - WHOLE.to_bits()).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        #[expect(clippy::cast_precision_loss, reason = "as rows do it")]
        fn a_percentage_is_exact(
            whole in prop_oneof![1..2000_i64, 1..ORDINARY_MAX],
            part in prop_oneof![-5..2000_i64, 0..ORDINARY_MAX],
        ) {
            let part = part % (whole + 1);
            let exact = i128::from(part.max(0)) * 100 / i128::from(whole);
            prop_assert_eq!(i128::from(percent(part, whole, 1.0 / whole as f64)), exact);
        }

        #[test]
        fn evenness_is_that_of_the_plain_rules(
            allocatable in prop::array::uniform3(prop_oneof![1..2000_i64, 1..ORDINARY_MAX]),
            requested in prop::array::uniform3(prop_oneof![0..2000_i64, 0..ORDINARY_MAX]),
            taken in prop::array::uniform3(prop_oneof![0..50_i64, 0..ORDINARY_MAX]),
            is_even in any::<bool>(),
        ) {
            let requested = if is_even { allocatable.map(|it| it / 2) } else { requested };
            let row = Row::of_amounts(allocatable, requested);
            let with_pod = [0, 1, 2].map(|index| requested[index] + taken[index]);
            prop_assert_eq!(evenness(&row, taken), balance(allocatable, with_pod));
        }
    }
}
