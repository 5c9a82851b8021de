//! Affinity between Pods as running sums over places, in both directions.

use model::ClusterPod;
use rules::{Cluster, Plugin, Reason, Rules, existing_term_matches, own_term_matches};

use super::super::NodeIndex;
use super::super::carried::{Carried, TermId, TermsAt};
use super::super::count::Count;
use super::super::counters::{Counted, CounterId};
use super::super::normalizer::{ScoredNode, Span};
use super::super::rows::Slot;
use super::super::topology::NOWHERE;

#[derive(Debug, Default)]
pub(in crate::placing) struct PodAffinity {
    /// Required affinity, one for each term.
    pub(in crate::placing) together: Vec<Count>,
    /// Whether its own terms mean it, so that it may be the first.
    means_itself: bool,
    /// Required anti-affinity: its own, and that of Pods on Nodes.
    pub(in crate::placing) anti: Vec<Count>,
    pub(in crate::placing) avoided: Vec<Count>,
    /// Preferences between Pods: what each one counts, and what it weighs.
    pub(in crate::placing) attraction: Vec<(Count, i64)>,
    /// Terms that Pods carry, up to here, were asked whether they mean this class.
    asked_at: TermsAt,
    /// Those that do, and matter to it.
    meant_by: Vec<TermId>,
    /// No Pod matches its required affinity yet, and it may be the first.
    is_first: bool,
}

impl PodAffinity {
    /// Of the Pod's own terms.
    pub(in crate::placing) fn new(
        rules: &Rules,
        cluster: &Cluster,
        pod: &ClusterPod,
        index: &mut NodeIndex,
    ) -> Self {
        let mut it = Self::default();
        let own = &pod.pod_affinity;
        if rules.filters_by(Plugin::InterPodAffinity) {
            it.means_itself = !own.required.is_empty()
                && own
                    .required
                    .iter()
                    .all(|term| own_term_matches(cluster, term, pod.namespace(), &pod.labels));
            for term in &own.required {
                let meant = Counted::MeantBy(own.required.clone());
                it.together.push(Count::new(meant, &term.topology_key, cluster, index));
            }
            for term in &own.anti_required {
                let meant = Counted::MeantBy(vec![term.clone()]);
                it.anti.push(Count::new(meant, &term.topology_key, cluster, index));
            }
        }
        if rules.scores_by(Plugin::InterPodAffinity) {
            let near = own.preferred.iter().map(|it| (it, 1));
            let away = own.anti_preferred.iter().map(|it| (it, -1));
            for (weighted, sign) in near.chain(away) {
                let meant = Counted::MeantBy(vec![weighted.term.clone()]);
                let count = Count::new(meant, &weighted.term.topology_key, cluster, index);
                it.attraction.push((count, sign * i64::from(weighted.weight)));
            }
        }
        it
    }

    /// Whether a term that means this class is not carried any more.
    pub(in crate::placing) fn has_lost_term(&self, index: &NodeIndex) -> bool {
        let carried = &index.counters.carried;
        self.asked_at.gone != carried.at().gone
            && self.meant_by.iter().any(|term| !carried.contains(*term))
    }

    /// Terms that have come since then. Whether any of them means this class.
    pub(in crate::placing) fn attach_carried(
        &mut self,
        rules: &Rules,
        cluster: &Cluster,
        pod: &ClusterPod,
        index: &mut NodeIndex,
    ) -> bool {
        let carried = &index.counters.carried;
        let asked_at = std::mem::replace(&mut self.asked_at, carried.at());
        if asked_at.came == self.asked_at.came {
            return false;
        }
        let new: Vec<(TermId, (CounterId, Carried))> =
            carried.since(asked_at).map(|(id, term)| (id, term.clone())).collect();
        let own = &pod.pod_affinity;
        let is_spared = rules.ignore_preferred_terms_of_existing_pods
            && own.preferred.is_empty()
            && own.anti_preferred.is_empty();
        let scores = rules.scores_by(Plugin::InterPodAffinity) && !is_spared;
        let filters = rules.filters_by(Plugin::InterPodAffinity);
        let hard_weight = i64::from(rules.hard_pod_affinity_weight);
        let mut is_meant = false;
        for (id, (counter, carried)) in new {
            if !existing_term_matches(cluster, carried.term(), pod) {
                continue;
            }
            let mut count =
                || Count::of(Some(counter), &carried.term().topology_key, cluster, index);
            match &carried {
                Carried::KeepAway(_) if filters => self.avoided.push(count()),
                Carried::Together(_) if scores && hard_weight > 0 => {
                    self.attraction.push((count(), hard_weight));
                }
                Carried::Prefer(_, weight) if scores => self.attraction.push((count(), *weight)),
                _ => continue,
            }
            self.meant_by.push(id);
            is_meant = true;
        }
        is_meant
    }

    /// Whether no required term keeps the class from a Node.
    pub(in crate::placing) fn is_soft(&self) -> bool {
        [&self.together, &self.anti, &self.avoided].iter().all(|counts| counts.is_empty())
    }

    pub(in crate::placing) fn counts(&self) -> impl Iterator<Item = &Count> {
        let attraction = self.attraction.iter().map(|(count, _)| count);
        self.together.iter().chain(&self.anti).chain(&self.avoided).chain(attraction)
    }

    pub(in crate::placing) fn counts_mut(&mut self) -> impl Iterator<Item = &mut Count> {
        let attraction = self.attraction.iter_mut().map(|(count, _)| count);
        let required = self.together.iter_mut().chain(&mut self.anti).chain(&mut self.avoided);
        required.chain(attraction)
    }

    /// To be called before questions, after all changes.
    pub(in crate::placing) fn settle(&mut self) {
        self.is_first = self.means_itself && self.together.iter().all(|count| count.total == 0);
    }

    /// Whether Pods on a Node can keep it off that Node alone.
    pub(in crate::placing) fn keeps_apart_on_nodes(&self) -> bool {
        self.anti.iter().chain(&self.avoided).any(|count| count.is_of_nodes)
    }

    /// Whether Pods keep it off the Node: by terms whose places are single Nodes, or by the others.
    pub(in crate::placing) fn is_kept_apart(
        &self,
        slot: Slot,
        index: &NodeIndex,
        of_nodes: bool,
    ) -> bool {
        let mut apart = self.anti.iter().chain(&self.avoided);
        apart.any(|count| count.is_of_nodes == of_nodes && count.here(slot, index) > 0)
    }

    pub(in crate::placing) fn is_together(
        &self,
        slot: Slot,
        index: &NodeIndex,
        of_nodes: bool,
    ) -> bool {
        let mut counts = self.together.iter().filter(|count| count.is_of_nodes == of_nodes);
        counts.all(|count| {
            let is_somewhere = count.domain(slot, index) != NOWHERE;
            is_somewhere && (self.is_first || count.here(slot, index) > 0)
        })
    }

    pub(in crate::placing) fn reason(&self, slot: Slot, index: &NodeIndex) -> Option<Reason> {
        if ![false, true].iter().all(|level| self.is_together(slot, index, *level)) {
            return Some(Reason::POD_AFFINITY);
        }
        let meets = |counts: &[Count]| counts.iter().any(|count| count.here(slot, index) > 0);
        if meets(&self.anti) {
            return Some(Reason::POD_ANTI_AFFINITY);
        }
        meets(&self.avoided).then_some(Reason::EXISTING_PODS_ANTI_AFFINITY)
    }
}

/// What the preferences weigh on each Node.
pub(in crate::placing) fn write_raw(
    affinity: &PodAffinity,
    index: &NodeIndex,
    nodes: &mut [ScoredNode],
) {
    if affinity.attraction.is_empty() {
        return;
    }
    for node in nodes {
        let counts = affinity.attraction.iter();
        node.attraction = counts.fold(0, |sum, (count, weight)| {
            sum.saturating_add(weight.saturating_mul(count.here(node.slot, index)))
        });
    }
}

/// From the lowest, 0, to the highest, 100; all 0 when they are equal.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler divides as doubles too, and the result is between 0 and 100"
)]
pub(in crate::placing) fn normalize(span: Span, score: i64) -> i64 {
    let range = span.highest.saturating_sub(span.lowest);
    if range <= 0 {
        return 0;
    }
    (100.0 * (score.saturating_sub(span.lowest) as f64 / range as f64)) as i64
}
