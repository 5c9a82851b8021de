//! Spread constraints as running sums over places.

use model::{ClusterPod, SelectorError, WhenUnsatisfiable};
use rules::{Cluster, Constraint, Reason, Rules};

use super::super::NodeIndex;
use super::super::constraints::Constraints;
use super::super::count::Count;
use super::super::counters::Counted;
use super::super::normalizer::{ScoredNode, Span, share};
use super::super::rows::Slot;
use super::super::topology::NOWHERE;

/// The label by which each Node is a place of its own when Pods are spread as a preference.
const HOSTNAME: &str = "kubernetes.io/hostname";

#[derive(Debug)]
pub(in crate::placing) struct HardSpread {
    pub(in crate::placing) count: Count,
    max_skew: i64,
    pub(in crate::placing) min_domains: i64,
    means_itself: bool,
    pub(in crate::placing) fewest: i64,
}

#[derive(Debug)]
pub(in crate::placing) struct SoftSpread {
    pub count: Count,
    pub max_skew: i64,
    /// Each Node is a place of its own, whatever its label says.
    pub is_of_nodes: bool,
}

impl HardSpread {
    pub(in crate::placing) fn holds(&self, slot: Slot, index: &NodeIndex) -> bool {
        if self.count.domain(slot, index) == NOWHERE {
            return false;
        }
        let matching = self.count.here(slot, index) + i64::from(self.means_itself);
        matching.saturating_sub(self.fewest) <= self.max_skew
    }

    /// Why the Node does not hold.
    pub(in crate::placing) fn reason(&self, slot: Slot, index: &NodeIndex) -> Reason {
        if self.count.domain(slot, index) == NOWHERE {
            Reason::TOPOLOGY_SPREAD_LABEL_MISSING
        } else {
            Reason::TOPOLOGY_SPREAD
        }
    }
}

pub(in crate::placing) fn hard_spread(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    index: &mut NodeIndex,
) -> Result<Vec<HardSpread>, SelectorError> {
    let all = rules::constraints(rules, cluster, pod, WhenUnsatisfiable::DoNotSchedule)?;
    let mut spread = Vec::new();
    for constraint in &all {
        let mut count = counted(constraint, cluster, pod, index);
        count.only(cluster, index, |node| {
            rules::has_every_key(node, &all) && constraint.includes(pod, node)
        });
        spread.push(HardSpread {
            count,
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
            means_itself: constraint.selector.matches(&pod.labels),
            fewest: 0,
        });
    }
    Ok(spread)
}

pub(in crate::placing) fn soft_spread(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    index: &mut NodeIndex,
    needs_every_key: bool,
) -> Result<Vec<SoftSpread>, SelectorError> {
    let all = rules::constraints(rules, cluster, pod, WhenUnsatisfiable::ScheduleAnyway)?;
    let mut spread = Vec::new();
    for constraint in &all {
        let mut count = counted(constraint, cluster, pod, index);
        let is_of_nodes = &*constraint.topology_key == HOSTNAME;
        if is_of_nodes {
            count.is_of_nodes = true;
        } else {
            // Its places are told apart by their sums, however few Nodes they have.
            count.is_of_nodes = false;
            count.only(cluster, index, |node| {
                let counts = !needs_every_key || rules::has_every_key(node, &all);
                counts && constraint.includes(pod, node)
            });
        }
        spread.push(SoftSpread { count, max_skew: constraint.max_skew, is_of_nodes });
    }
    Ok(spread)
}

/// A selector `{}` counts no Pods.
fn counted(
    constraint: &Constraint,
    cluster: &Cluster,
    pod: &ClusterPod,
    index: &mut NodeIndex,
) -> Count {
    let counter = (!constraint.selector.is_everything()).then(|| {
        let namespace = pod.namespace().clone();
        let counted = Counted::Matching { namespace, selector: constraint.selector.clone() };
        index.counter(counted, cluster)
    });
    Count::of(counter, &constraint.topology_key, cluster, index)
}

/// Scores by how many matching Pods are near, weighed, with the skew that does not matter: lower is better. Its buffers
/// are kept between decisions, so that none is allocated.
#[derive(Debug, Default)]
pub(in crate::placing) struct SpreadScores {
    places: Vec<u64>,
    stamp: u64,
    weights: Vec<f64>,
}

impl SpreadScores {
    /// Sets `spread` of the Nodes that take part.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "kube-scheduler sums as doubles too; the cast saturates"
    )]
    pub(in crate::placing) fn write(
        &mut self,
        constraints: &Constraints,
        index: &NodeIndex,
        nodes: &mut [ScoredNode],
    ) {
        let soft = &constraints.soft_spread;
        if soft.is_empty() {
            return;
        }
        let has_every_key =
            |slot: Slot| soft.iter().all(|it| it.count.domain(slot, index) != NOWHERE);
        let competes = |it: &ScoredNode| !constraints.needs_every_key || has_every_key(it.slot);
        for node in nodes.iter_mut() {
            node.spread = competes(node).then_some(0);
        }
        self.weights.clear();
        for it in soft {
            let places = self.places_of(it, index, nodes);
            self.weights.push((places as f64 + 2.0).ln());
        }
        for node in nodes.iter_mut().filter(|it| it.spread.is_some()) {
            let mut score = 0.0;
            for (it, weight) in soft.iter().zip(&self.weights) {
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

    /// How many places the Nodes that take part are in.
    fn places_of(&mut self, it: &SoftSpread, index: &NodeIndex, nodes: &[ScoredNode]) -> usize {
        let competing = nodes.iter().filter(|it| it.spread.is_some());
        if it.is_of_nodes {
            return competing.count();
        }
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
    }
}

/// The fewest get 100.
pub(in crate::placing) fn normalize(span: Span, score: i64) -> i64 {
    let highest = span.highest.max(0);
    if highest == 0 {
        return 100;
    }
    share(highest.saturating_add(span.lowest).saturating_sub(score), highest)
}
