//! Scores that are normalized over all feasible Nodes (NormalizeScore): affinity, spreading, taints, images.

use rules::{Plugin, Rules};

use super::NodeIndex;
use super::plugins::pod_topology_spread::SpreadScores;
use super::plugins::{
    image_locality, inter_pod_affinity, node_affinity, pod_topology_spread, taint_toleration,
};
use super::pod_classes::PodClass;
use super::rows::Slot;
use super::statics::{Group, NodeGroups};
use crate::rng::Draw;

/// A feasible Node, or the best Node of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredNode {
    /// Of a cell, one of its Nodes.
    pub slot: Slot,
    pub group: usize,
    /// The score of the Node itself.
    pub own: i64,
    /// Which cell it is the best Node of, and in which of its rankings. `None`: it is a Node.
    pub cell: Option<(usize, usize)>,
    pub attraction: i64,
    /// `None`: it does not take part in spreading.
    pub spread: Option<i64>,
    /// What its devices score, before that is normalized.
    pub of_devices: i64,
}

impl ScoredNode {
    pub fn new(slot: Slot, group: usize, own: i16, cell: Option<(usize, usize)>) -> Self {
        let own = i64::from(own);
        Self { slot, group, own, cell, attraction: 0, spread: None, of_devices: 0 }
    }
}

/// Normalizes the scores of feasible Nodes. Its buffers are kept between decisions, so that none is allocated.
#[derive(Debug, Default)]
pub(super) struct Normalizer {
    pub nodes: Vec<ScoredNode>,
    totals: Vec<i64>,
    groups: Vec<i64>,
    spread: SpreadScores,
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
        inter_pod_affinity::write_raw(&class.constraints.affinity, index, &mut self.nodes);
        self.spread.write(&class.constraints, index, &mut self.nodes);
        let weight = |plugin| if rules.scores_by(plugin) { rules.weight_of(plugin) } else { 0 };
        let attraction = Span::of(self.nodes.iter().map(|it| it.attraction));
        let attraction_weight = weight(Plugin::InterPodAffinity);
        let spread = Span::of(self.nodes.iter().filter_map(|it| it.spread));
        let spread_weight = weight(Plugin::PodTopologySpread);
        let most_of_devices = self.nodes.iter().map(|it| it.of_devices).max().unwrap_or(0);
        let devices_weight = weight(Plugin::DynamicResources);
        let spreads = !class.constraints.soft_spread.is_empty();
        // Most Nodes have what the one before had, and a division takes longer than to see that.
        let mut attracts =
            Last::of(|raw| attraction_weight * inter_pod_affinity::normalize(attraction, raw));
        let mut evens = Last::of(|raw| spread_weight * pod_topology_spread::normalize(spread, raw));
        self.totals.clear();
        for it in &self.nodes {
            let mut total = it.own.saturating_add(self.groups[it.group]);
            total = total.saturating_add(attracts.score(it.attraction));
            if spreads && let Some(raw) = it.spread {
                total = total.saturating_add(evens.score(raw));
            }
            if most_of_devices > 0 {
                let share = share(it.of_devices, most_of_devices);
                total = total.saturating_add(devices_weight.saturating_mul(share));
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
        let taints = Span::of(there().map(|it| it.taints));
        let preferences = Span::of(there().map(|it| it.preference));
        let weight = |plugin| if rules.scores_by(plugin) { rules.weight_of(plugin) } else { 0 };
        let taints_weight = weight(Plugin::TaintToleration);
        let images_weight = weight(Plugin::ImageLocality);
        let score = |group: &Group| {
            let mut total = 0_i64;
            if taints_weight > 0 {
                total += taints_weight * taint_toleration::normalize(taints, group.taints);
            }
            if class.has_preferences {
                let share = node_affinity::normalize(preferences, group.preference);
                total += weight(Plugin::NodeAffinity).saturating_mul(share);
            }
            if images_weight > 0 {
                total += images_weight * image_locality::score(&class.pod, group.images, index);
            }
            total
        };
        self.groups.clear();
        self.groups.extend(groups.iter().map(score));
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
pub(super) struct Span {
    pub lowest: i64,
    pub highest: i64,
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
}

/// `100 × part / whole`, rounded towards zero.
pub(super) fn share(part: i64, whole: i64) -> i64 {
    let product = i128::from(part) * 100;
    product.checked_div(i128::from(whole)).and_then(|it| i64::try_from(it).ok()).unwrap_or(0)
}
