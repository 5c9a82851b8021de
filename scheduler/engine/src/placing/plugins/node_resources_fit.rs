//! Room on the Node, and how much of it is left.

use std::sync::Arc;

use model::{Resources, SchedulingSpec, is_extended_resource, is_scalar_resource};
use rules::{ResourceUse, Rules, ScoringStrategy, fit_score};

use super::super::rows::{Extras, Row, three};

#[derive(Debug)]
pub(in crate::placing) struct ResourceNeeds {
    pub asked: [i64; 3],
    /// The others, that must be there.
    pub scalars: Vec<(Arc<str>, i64)>,
}

#[derive(Debug)]
pub(in crate::placing) struct FitScore {
    pub(in crate::placing) weight: i64,
    pub(in crate::placing) asked: Resources,
    /// The weights of CPU and memory, when those are what counts and free ones are better.
    pub(in crate::placing) least: Option<[i64; 2]>,
    strategy: ScoringStrategy,
}

pub(in crate::placing) enum Missing<'a> {
    Places,
    /// CPU, memory, ephemeral storage.
    Standard {
        index: usize,
        exceeds_node: bool,
    },
    Scalar {
        name: &'a Arc<str>,
        exceeds_node: bool,
    },
}

impl ResourceNeeds {
    pub(in crate::placing) fn new(rules: &Rules, scheduling: &SchedulingSpec) -> Self {
        let asked = &scheduling.requests.asked;
        let is_ignored = |name: &str| {
            let group = name.split('/').next().unwrap_or(name);
            is_extended_resource(name)
                && (rules.ignored_resources.contains(name)
                    || rules.ignored_resource_groups.contains(group))
        };
        let scalars =
            asked.scalar.iter().filter(|(name, wanted)| **wanted > 0 && !is_ignored(name));
        Self {
            asked: three(asked),
            scalars: scalars.map(|(name, wanted)| (name.clone(), *wanted)).collect(),
        }
    }

    pub(in crate::placing) fn fits(&self, row: &Row, extras: &Extras) -> bool {
        let has_standard = (0..3).all(|index| {
            !is_short(self.asked[index], row.allocatable[index], row.requested[index])
        });
        let has_scalar = |(name, wanted): &(Arc<str>, i64)| {
            let (has, requested) = extras.scalar(name);
            !is_short(*wanted, has, requested)
        };
        row.pods.saturating_add(1) <= row.pods_max
            && has_standard
            && self.scalars.iter().all(has_scalar)
    }

    /// What is missing on the Node: places for Pods, and the names of resources with whether the Node
    /// never has enough.
    pub fn missing(&self, row: &Row, extras: &Extras, mut tell: impl FnMut(Missing<'_>)) {
        if row.pods.saturating_add(1) > row.pods_max {
            tell(Missing::Places);
        }
        for index in 0..3 {
            let (wanted, has) = (self.asked[index], row.allocatable[index]);
            if is_short(wanted, has, row.requested[index]) {
                tell(Missing::Standard { index, exceeds_node: wanted > has });
            }
        }
        for (name, wanted) in &self.scalars {
            let (has, requested) = extras.scalar(name);
            if is_short(*wanted, has, requested) {
                tell(Missing::Scalar { name, exceeds_node: *wanted > has });
            }
        }
    }
}

/// What is not asked for is not checked.
fn is_short(wanted: i64, has: i64, requested: i64) -> bool {
    wanted > 0 && wanted > has.saturating_sub(requested)
}

impl FitScore {
    pub(in crate::placing) fn new(rules: &Rules, scheduling: &SchedulingSpec, weight: i64) -> Self {
        let strategy = rules.fit.clone();
        let least = match &strategy {
            ScoringStrategy::LeastAllocated(resources) => match resources.as_slice() {
                [one, other] if is_cpu_and_memory([&one.resource, &other.resource]) => {
                    let is_cpu_first = &*one.resource == "cpu";
                    let weights = [one.weight, other.weight];
                    let weights = if is_cpu_first { weights } else { [weights[1], weights[0]] };
                    // Others than positive ones do not pass the configuration.
                    Some(weights).filter(|it| it.iter().all(|weight| (1..=100).contains(weight)))
                }
                _ => None,
            },
            _ => None,
        };
        Self { weight, asked: scheduling.requests.asked_in_scores.clone(), least, strategy }
    }

    pub(in crate::placing) fn score(&self, row: &Row, extras: &Extras) -> i64 {
        let Some(weights) = self.least else { return self.plain(row, extras) };
        let asked = three(&self.asked);
        let (mut sum, mut weighed) = (0, 0);
        for index in 0..2 {
            let has = row.allocatable[index];
            if has == 0 {
                continue;
            }
            let with_pod = row.requested_in_scores[index].saturating_add(asked[index]);
            let share = if with_pod > has { 0 } else { percent(has.saturating_sub(with_pod), has) };
            sum += share * weights[index];
            weighed += weights[index];
        }
        if weighed == 0 { 0 } else { sum / weighed }
    }

    /// By the plain rules' formula, for settings that few have.
    fn plain(&self, row: &Row, extras: &Extras) -> i64 {
        let names = self.strategy.resources().iter().map(|it| &it.resource);
        let uses = uses(row, extras, names, &self.asked, Sums::WithDefaults);
        fit_score(&self.strategy, &uses)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::placing) enum Sums {
    WithDefaults,
    AsRequested,
}

pub(in crate::placing) fn uses<'a>(
    row: &Row,
    extras: &Extras,
    names: impl Iterator<Item = &'a Arc<str>>,
    asked: &Resources,
    sums: Sums,
) -> Vec<ResourceUse> {
    let mut found = Vec::new();
    for (index, name) in names.enumerate() {
        let place = ["cpu", "memory", "ephemeral-storage"].iter().position(|it| **it == **name);
        let (allocatable, before) = match place {
            Some(place @ 0..2) if sums == Sums::WithDefaults => {
                (row.allocatable[place], row.requested_in_scores[place])
            }
            Some(place) => (row.allocatable[place], row.requested[place]),
            None => extras.scalar(name),
        };
        let wanted = asked.amount(name);
        if allocatable == 0 || wanted == 0 && is_scalar_resource(name) {
            continue;
        }
        let with_pod = before.saturating_add(wanted);
        found.push(ResourceUse { index, allocatable, before, with_pod });
    }
    found
}

pub(in crate::placing) fn is_cpu_and_memory<'a>(
    names: impl IntoIterator<Item = &'a Arc<str>>,
) -> bool {
    let mut names: Vec<&str> = names.into_iter().map(|name| &**name).collect();
    names.sort_unstable();
    names == ["cpu", "memory"]
}

/// `100 × part / whole`, rounded down, for amounts that are not negative. A double is off by one at most,
/// and much faster than a division of integers.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is lost is put right, and the quotient is between 0 and 100"
)]
fn percent(part: i64, whole: i64) -> i64 {
    /// A hundred times this fits.
    const ORDINARY_MAX: i64 = 1 << 56;
    let ordinary = 0..ORDINARY_MAX;
    if !ordinary.contains(&part) || !ordinary.contains(&whole) {
        let product = i128::from(part) * 100;
        let quotient = product.checked_div(i128::from(whole));
        return quotient.and_then(|it| i64::try_from(it).ok()).unwrap_or(0);
    }
    let product = part * 100;
    let quotient = (product as f64 / whole as f64) as i64;
    let rest = product - quotient * whole;
    if rest < 0 {
        quotient - 1
    } else if rest >= whole {
        quotient + 1
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_percentage_is_exact(
            whole in prop_oneof![1..2000_i64, 1..i64::MAX],
            part in prop_oneof![0..2000_i64, 0..i64::MAX],
        ) {
            let part = part % whole + i64::from(part % 3 == 0);
            let exact = i128::from(part) * 100 / i128::from(whole);
            prop_assert_eq!(i128::from(percent(part, whole)), exact);
        }
    }
}
