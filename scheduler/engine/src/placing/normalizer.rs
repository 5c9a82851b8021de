//! Scores that are normalized over all feasible Nodes (NormalizeScore): affinity, spreading, taints, images.

use rules::{Plugin, Rules};

use super::NodeIndex;
use super::pod_classes::PodClass;
use super::rows::Slot;
use super::statics::{Group, NodeGroups};
use super::topology::NOWHERE;
use crate::rng::Draw;

/// A feasible Node, or the best Node of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredNode {
    /// Of a cell, one of its Nodes.
    pub slot: Slot,
    pub group: usize,
    /// The score of the Node itself.
    pub own: i64,
    /// `None`: it is a Node.
    pub cell: Option<usize>,
    attraction: i64,
    /// `None`: it does not take part in spreading.
    spread: Option<i64>,
}

impl ScoredNode {
    pub fn new(slot: Slot, group: usize, own: i16, cell: Option<usize>) -> Self {
        let own = i64::from(own);
        Self { slot, group, own, cell, attraction: 0, spread: None }
    }
}

/// Normalizes the scores of feasible Nodes. Its buffers are kept between decisions, so that none is allocated.
#[derive(Debug, Default)]
pub(super) struct Normalizer {
    pub nodes: Vec<ScoredNode>,
    totals: Vec<i64>,
    groups: Vec<i64>,
    places: Vec<u64>,
    stamp: u64,
    spread_weights: Vec<f64>,
}

impl Normalizer {
    /// The winner, by the draw among equals. None when no Node is feasible.
    pub fn winner(
        &mut self,
        class: &PodClass,
        rules: &Rules,
        index: &NodeIndex,
        groups: NodeGroups<'_>,
        draw: Draw,
    ) -> Option<ScoredNode> {
        if self.nodes.len() <= 1 {
            return self.nodes.first().copied();
        }
        self.score_groups(class, rules, index, groups);
        self.score_attraction(class, index);
        self.score_spread(class, index);
        let weight = |plugin: Plugin, weight: u32| {
            if rules.scores_by(plugin) { i64::from(weight.max(1)) } else { 0 }
        };
        let attraction = Span::of(self.nodes.iter().map(|it| it.attraction));
        let attraction_weight = weight(Plugin::InterPodAffinity, rules.weights.inter_pod_affinity);
        let spread = Span::of(self.nodes.iter().filter_map(|it| it.spread));
        let spread_weight = weight(Plugin::PodTopologySpread, rules.weights.pod_topology_spread);
        let spreads = !class.constraints.soft_spread.is_empty();
        // Most Nodes have what the one before had, and a division takes longer than to see that.
        let mut attracts = Last::of(|raw| attraction_weight * attraction.above_lowest(raw));
        let mut evens = Last::of(|raw| spread_weight * spread.fewest_first(raw));
        self.totals.clear();
        for it in &self.nodes {
            let mut total = it.own.saturating_add(self.groups[it.group]);
            total = total.saturating_add(attracts.score(it.attraction));
            if spreads && let Some(raw) = it.spread {
                total = total.saturating_add(evens.score(raw));
            }
            self.totals.push(total);
        }
        let best = self.totals.iter().copied().max()?;
        let winners = self.nodes.iter().zip(&self.totals).filter(|(_, total)| **total == best);
        winners.map(|(it, _)| *it).min_by_key(|it| draw.place_of(it.slot.into()))
    }

    /// What is the same for all Nodes of a group: taints, preferences, images.
    fn score_groups(
        &mut self,
        class: &PodClass,
        rules: &Rules,
        index: &NodeIndex,
        groups: NodeGroups<'_>,
    ) {
        let groups = groups.all();
        let there = || self.nodes.iter().map(|it| &groups[it.group]);
        let most_taints = there().map(|it| it.taints).max().unwrap_or(0);
        let best_preference = there().map(|it| it.preference).max().unwrap_or(0);
        let weights = &rules.weights;
        let score = |group: &Group| {
            let mut total = 0_i64;
            if rules.scores_by(Plugin::TaintToleration) {
                let share = if most_taints <= 0 { 0 } else { share(group.taints, most_taints) };
                total += i64::from(weights.taint_toleration.max(1)) * (100 - share);
            }
            if class.has_preferences {
                let preference = group.preference;
                let share = if best_preference <= 0 {
                    preference
                } else {
                    share(preference, best_preference)
                };
                total += i64::from(weights.node_affinity.max(1)).saturating_mul(share);
            }
            if rules.scores_by(Plugin::ImageLocality) {
                let score = class.image_score(group.images, index);
                total += i64::from(weights.image_locality.max(1)) * score;
            }
            total
        };
        self.groups.clear();
        self.groups.extend(groups.iter().map(score));
    }

    fn score_attraction(&mut self, class: &PodClass, index: &NodeIndex) {
        if class.constraints.attraction.is_empty() {
            return;
        }
        for node in &mut self.nodes {
            let counts = class.constraints.attraction.iter();
            node.attraction = counts.fold(0, |sum, (count, weight)| {
                sum.saturating_add(weight.saturating_mul(count.here(node.slot, index)))
            });
        }
    }

    /// Lower is better: the Pods already near, weighed, with the skew that does not matter.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "kube-scheduler sums as doubles too; the cast saturates"
    )]
    fn score_spread(&mut self, class: &PodClass, index: &NodeIndex) {
        let constraints = &class.constraints;
        let soft = &constraints.soft_spread;
        if soft.is_empty() {
            return;
        }
        let has_every_key =
            |slot: Slot| soft.iter().all(|it| it.count.domain(slot, index) != NOWHERE);
        let competes = |it: &ScoredNode| !constraints.needs_every_key || has_every_key(it.slot);
        for node in &mut self.nodes {
            node.spread = competes(node).then_some(0);
        }
        self.spread_weights.clear();
        for it in soft {
            let competing = self.nodes.iter().filter(|it| it.spread.is_some());
            let places = if it.is_of_nodes {
                competing.count()
            } else {
                self.stamp += 1;
                let mut places = 0;
                for node in competing {
                    let domain = it.count.domain(node.slot, index);
                    // Nodes without the label are one place, the last.
                    let place = (domain as usize).min(index.topology.of(it.count.key).domains());
                    if self.places.len() <= place {
                        self.places.resize(place + 1, 0);
                    }
                    places += usize::from(self.places[place] != self.stamp);
                    self.places[place] = self.stamp;
                }
                places
            };
            self.spread_weights.push((places as f64 + 2.0).ln());
        }
        for node in self.nodes.iter_mut().filter(|it| it.spread.is_some()) {
            let mut score = 0.0;
            for (it, weight) in soft.iter().zip(&self.spread_weights) {
                if it.count.domain(node.slot, index) == NOWHERE {
                    continue;
                }
                let matching = if it.is_of_nodes {
                    it.count.on_node(node.slot, index)
                } else {
                    it.count.here(node.slot, index)
                };
                score += matching as f64 * weight + (it.max_skew - 1) as f64;
            }
            node.spread = Some(score.round() as i64);
        }
    }
}

/// Remembers the last score that was computed.
struct Last<F> {
    known: Option<(i64, i64)>,
    compute: F,
}

impl<F: Fn(i64) -> i64> Last<F> {
    fn of(compute: F) -> Self {
        Self { known: None, compute }
    }

    fn score(&mut self, raw: i64) -> i64 {
        match self.known {
            Some((known, score)) if known == raw => score,
            _ => {
                let score = (self.compute)(raw);
                self.known = Some((raw, score));
                score
            }
        }
    }
}

/// The lowest and the highest of some scores.
#[derive(Clone, Copy)]
struct Span {
    lowest: i64,
    highest: i64,
}

impl Span {
    fn of(scores: impl Iterator<Item = i64>) -> Self {
        let mut span: Option<Self> = None;
        for score in scores {
            let known = span.get_or_insert(Self { lowest: score, highest: score });
            known.lowest = known.lowest.min(score);
            known.highest = known.highest.max(score);
        }
        span.unwrap_or(Self { lowest: 0, highest: 0 })
    }

    /// From the lowest, 0, to the highest, 100; all 0 when they are equal.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "kube-scheduler divides as doubles too, and the result is between 0 and 100"
    )]
    fn above_lowest(self, score: i64) -> i64 {
        let range = self.highest.saturating_sub(self.lowest);
        if range <= 0 {
            return 0;
        }
        (100.0 * (score.saturating_sub(self.lowest) as f64 / range as f64)) as i64
    }

    /// The fewest get 100.
    fn fewest_first(self, score: i64) -> i64 {
        let highest = self.highest.max(0);
        if highest == 0 {
            return 100;
        }
        share(highest.saturating_add(self.lowest).saturating_sub(score), highest)
    }
}

/// `100 × part / whole`, rounded towards zero.
fn share(part: i64, whole: i64) -> i64 {
    let product = i128::from(part) * 100;
    product.checked_div(i128::from(whole)).and_then(|it| i64::try_from(it).ok()).unwrap_or(0)
}
