//! Whether a Node by itself fits a class of Pods (NodeResourcesFit, NodePorts), and its score.

use std::sync::Arc;

use model::{HostPort, Resources, SchedulingSpec, is_extended_resource, is_scalar_resource};
use rules::{Plugin, ResourceUse, Rules, ScoringStrategy, fit_score};

use super::balance::{balance, balanced_score};
use super::quick::Quick;
use super::rows::{Extras, Row, three};
use super::tree::INFEASIBLE;

#[derive(Debug)]
pub(super) struct NodeFit {
    /// None: the profile does not check.
    needs: Option<ResourceNeeds>,
    pub ports: Vec<HostPort>,
    fit: Option<FitScore>,
    balanced: Option<BalancedScore>,
    /// The same in fewer steps, for what most Pods ask for.
    quick: Option<Quick>,
}

#[derive(Debug)]
pub(super) struct ResourceNeeds {
    pub asked: [i64; 3],
    /// The others, that must be there.
    pub scalars: Vec<(Arc<str>, i64)>,
}

#[derive(Debug)]
struct FitScore {
    weight: i64,
    asked: Resources,
    /// The weights of CPU and memory, when those are what counts and free ones are better.
    least: Option<[i64; 2]>,
    strategy: ScoringStrategy,
}

#[derive(Debug)]
struct BalancedScore {
    weight: i64,
    asked: Resources,
    /// None: CPU and memory.
    resources: Option<Vec<Arc<str>>>,
}

/// Scores of one Node that are compared with nothing must stay below this to take part in a tournament.
const SCORE_MAX: i64 = i16::MAX as i64;

impl NodeFit {
    /// `None`: weights so large that a tournament has no place for the scores.
    pub fn new(rules: &Rules, scheduling: &SchedulingSpec) -> Option<Self> {
        let weight =
            |plugin: Plugin, weight: u32| rules.scores_by(plugin).then(|| i64::from(weight.max(1)));
        let fit = weight(Plugin::NodeResourcesFit, rules.weights.node_resources_fit);
        let balanced =
            weight(Plugin::NodeResourcesBalancedAllocation, rules.weights.balanced_allocation);
        let requested = &scheduling.requests.effective;
        let is_idle = rules.balanced_resources.iter().all(|name| requested.amount(name) == 0);
        let balanced = balanced.filter(|_| !is_idle);
        // A score is between 0 and 100, but what evens out much can get up to 125.
        let most = fit.unwrap_or(0).saturating_mul(100);
        let most = most.saturating_add(balanced.unwrap_or(0).saturating_mul(125));
        if most >= SCORE_MAX {
            return None;
        }
        let ports = rules.filters_by(Plugin::NodePorts).then(|| scheduling.host_ports.clone());
        let mut node_fit = Self {
            quick: None,
            needs: rules
                .filters_by(Plugin::NodeResourcesFit)
                .then(|| ResourceNeeds::new(rules, scheduling)),
            ports: ports.unwrap_or_default(),
            fit: fit.map(|weight| FitScore::new(rules, scheduling, weight)),
            balanced: balanced.map(|weight| BalancedScore {
                weight,
                asked: requested.clone(),
                resources: (!is_cpu_and_memory(rules.balanced_resources.iter()))
                    .then(|| rules.balanced_resources.clone()),
            }),
        };
        node_fit.quick = node_fit.as_quick();
        Some(node_fit)
    }

    /// `None`: it takes looking at more than CPU, memory, storage and places for Pods.
    fn as_quick(&self) -> Option<Quick> {
        let (needs, fit) = (self.needs.as_ref()?, self.fit.as_ref()?);
        let balanced = self.balanced.as_ref();
        let is_plain = needs.scalars.is_empty()
            && self.ports.is_empty()
            && balanced.is_none_or(|it| it.resources.is_none());
        let evened = balanced.map(|it| (it.weight, three(&it.asked)));
        Quick::new(needs.asked, (fit.weight, three(&fit.asked)), fit.least?, evened)
            .filter(|_| is_plain)
    }

    /// For scoring many Nodes.
    pub fn quick(&self) -> Option<&Quick> {
        self.quick.as_ref()
    }

    /// Whether a [`Row`] tells whether a Node has room.
    pub fn look_at_rows_only(&self) -> bool {
        self.ports.is_empty() && self.needs.as_ref().is_none_or(|needs| needs.scalars.is_empty())
    }

    /// What a Node must have. `None`: the profile does not check.
    pub fn needs(&self) -> Option<&ResourceNeeds> {
        self.needs.as_ref()
    }

    /// The score of the Node; `INFEASIBLE` if it does not fit.
    pub fn score(&self, row: &Row, extras: &Extras) -> i16 {
        match &self.quick {
            Some(quick) if row.is_ordinary() => quick.score(row),
            _ => self.score_by_parts(row, extras),
        }
    }

    fn score_by_parts(&self, row: &Row, extras: &Extras) -> i16 {
        if !self.fits(row, extras) {
            return INFEASIBLE;
        }
        let fit = self.fit.as_ref().map_or(0, |fit| fit.weight * fit.score(row, extras));
        let balanced =
            self.balanced.as_ref().map_or(0, |even| even.weight * even.score(row, extras));
        i16::try_from(fit + balanced).unwrap_or(i16::MAX)
    }

    pub fn fits(&self, row: &Row, extras: &Extras) -> bool {
        let has_room = self.needs.as_ref().is_none_or(|needs| needs.fits(row, extras));
        has_room && !self.has_conflict(extras)
    }

    pub fn has_conflict(&self, extras: &Extras) -> bool {
        let taken = |wanted: &HostPort| extras.ports.iter().any(|it| it.conflicts_with(wanted));
        self.ports.iter().any(taken)
    }

    /// What is missing on the Node: places for Pods, and the names of resources with whether the Node
    /// never has enough.
    pub fn missing(&self, row: &Row, extras: &Extras, mut tell: impl FnMut(Missing<'_>)) {
        let Some(needs) = &self.needs else { return };
        if row.pods.saturating_add(1) > row.pods_max {
            tell(Missing::Places);
        }
        for index in 0..3 {
            let (wanted, has) = (needs.asked[index], row.allocatable[index]);
            if is_short(wanted, has, row.requested[index]) {
                tell(Missing::Standard { index, exceeds_node: wanted > has });
            }
        }
        for (name, wanted) in &needs.scalars {
            let (has, requested) = extras.scalar(name);
            if is_short(*wanted, has, requested) {
                tell(Missing::Scalar { name, exceeds_node: *wanted > has });
            }
        }
    }
}

pub(super) enum Missing<'a> {
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
    fn new(rules: &Rules, scheduling: &SchedulingSpec) -> Self {
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

    fn fits(&self, row: &Row, extras: &Extras) -> bool {
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
}

/// What is not asked for is not checked.
fn is_short(wanted: i64, has: i64, requested: i64) -> bool {
    wanted > 0 && wanted > has.saturating_sub(requested)
}

impl Extras {
    pub fn scalar(&self, name: &str) -> (i64, i64) {
        let amount =
            |of: &std::collections::BTreeMap<Arc<str>, i64>| of.get(name).copied().unwrap_or(0);
        (amount(&self.allocatable), amount(&self.requested))
    }
}

impl FitScore {
    fn new(rules: &Rules, scheduling: &SchedulingSpec, weight: i64) -> Self {
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

    fn score(&self, row: &Row, extras: &Extras) -> i64 {
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

impl BalancedScore {
    fn score(&self, row: &Row, extras: &Extras) -> i64 {
        let Some(resources) = &self.resources else {
            let mut with_pod = row.requested;
            for (sum, asked) in with_pod.iter_mut().zip(three(&self.asked)) {
                *sum = sum.saturating_add(asked);
            }
            return balanced_score(row.balance, balance(row.allocatable, with_pod));
        };
        let uses = uses(row, extras, resources.iter(), &self.asked, Sums::AsRequested);
        rules::balanced_score(&uses)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    WithDefaults,
    AsRequested,
}

fn uses<'a>(
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

fn is_cpu_and_memory<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> bool {
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
