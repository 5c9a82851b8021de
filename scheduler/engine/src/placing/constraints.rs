//! What a class of Pods requires of the Pods around it, as running sums over places.

use model::{ClusterPod, LabelSelector, SelectorError, WhenUnsatisfiable};
use rules::{Cluster, Constraint, Plugin, Reason, Rules, own_term_means, placed_term_means};

use super::NodeIndex;
use super::carried::{Carried, TermId, TermsAt};
use super::count::Count;
use super::counters::{Counted, CounterId};
use super::rows::Slot;
use super::topology::{KeyId, NOWHERE};

/// The label by which each Node is a place of its own when Pods are spread as a preference.
const HOSTNAME: &str = "kubernetes.io/hostname";

#[derive(Debug, Default)]
pub(super) struct Constraints {
    /// Required affinity, one for each term.
    together: Vec<Count>,
    /// Whether its own terms mean it, so that it may be the first.
    means_itself: bool,
    /// Required anti-affinity: its own, and that of Pods on Nodes.
    anti: Vec<Count>,
    avoided: Vec<Count>,
    pub spread: Vec<HardSpread>,
    pub soft_spread: Vec<SoftSpread>,
    /// Whether Nodes without one of the labels are left out of the soft spread.
    pub needs_every_key: bool,
    /// Preferences between Pods: what each one counts, and what it weighs.
    pub attraction: Vec<(Count, i64)>,
    /// Terms that Pods carry, up to here, were asked whether they mean this class.
    asked_at: TermsAt,
    /// Those that do, and matter to it.
    meant_by: Vec<TermId>,
    /// What it is spread among if it says nothing itself.
    siblings: Option<LabelSelector>,
    /// No Pod matches its required affinity yet, and it may be the first.
    is_first: bool,
}

#[derive(Debug)]
pub(super) struct HardSpread {
    count: Count,
    max_skew: i64,
    min_domains: i64,
    means_itself: bool,
    fewest: i64,
}

#[derive(Debug)]
pub(super) struct SoftSpread {
    pub count: Count,
    pub max_skew: i64,
    /// Each Node is a place of its own, whatever its label says.
    pub is_of_nodes: bool,
}

impl Constraints {
    /// Fails when spread constraints cannot be parsed.
    pub fn new(
        rules: &Rules,
        cluster: &Cluster,
        pod: &ClusterPod,
        index: &mut NodeIndex,
    ) -> Result<Self, SelectorError> {
        let mut it = Self::default();
        let own = &pod.pod_affinity;
        if rules.filters_by(Plugin::InterPodAffinity) {
            it.means_itself = !own.required.is_empty()
                && own
                    .required
                    .iter()
                    .all(|term| own_term_means(cluster, term, pod.namespace(), &pod.labels));
            for term in &own.required {
                let meant = Counted::MeantBy(own.required.clone());
                it.together.push(Count::new(meant, &term.topology_key, cluster, index));
            }
            for term in &own.anti_required {
                let meant = Counted::MeantBy(vec![term.clone()]);
                it.anti.push(Count::new(meant, &term.topology_key, cluster, index));
            }
        }
        if rules.filters_by(Plugin::PodTopologySpread) {
            it.spread = hard_spread(rules, cluster, pod, index)?;
        }
        if rules.scores_by(Plugin::PodTopologySpread) {
            it.needs_every_key = rules::score_needs_every_key(rules, pod);
            it.soft_spread = soft_spread(rules, cluster, pod, index, it.needs_every_key)?;
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
        it.siblings = pod.topology_spread.is_empty().then(|| cluster.siblings_of(pod));
        it.attach_carried(rules, cluster, pod, index);
        Ok(it)
    }

    /// Whether Services and controllers mean other Pods than when this was made.
    pub fn has_other_siblings(&self, cluster: &Cluster, pod: &ClusterPod) -> bool {
        self.siblings.as_ref().is_some_and(|before| *before != cluster.siblings_of(pod))
    }

    /// Whether a term that means this class is not carried any more.
    pub fn has_lost_term(&self, index: &NodeIndex) -> bool {
        let carried = &index.counters.carried;
        self.asked_at.gone != carried.at().gone
            && self.meant_by.iter().any(|term| !carried.contains(*term))
    }

    /// Terms that have come since then. Whether any of them means this class.
    pub fn attach_carried(
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
            if !placed_term_means(cluster, carried.term(), pod) {
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

    pub fn is_empty(&self) -> bool {
        self.counts().next().is_none()
    }

    /// Whether none of them keeps the class from a Node: they only make some Nodes better than others.
    pub fn are_soft(&self) -> bool {
        let hard = [&self.together, &self.anti, &self.avoided];
        hard.iter().all(|counts| counts.is_empty()) && self.spread.is_empty()
    }

    fn counts(&self) -> impl Iterator<Item = &Count> {
        let spread = self.spread.iter().map(|it| &it.count);
        let soft = self.soft_spread.iter().map(|it| &it.count);
        let attraction = self.attraction.iter().map(|(count, _)| count);
        let hard = self.together.iter().chain(&self.anti).chain(&self.avoided);
        hard.chain(spread).chain(soft).chain(attraction)
    }

    fn counts_mut(&mut self) -> impl Iterator<Item = &mut Count> {
        let spread = self.spread.iter_mut().map(|it| &mut it.count);
        let soft = self.soft_spread.iter_mut().map(|it| &mut it.count);
        let attraction = self.attraction.iter_mut().map(|(count, _)| count);
        let hard = self.together.iter_mut().chain(&mut self.anti).chain(&mut self.avoided);
        hard.chain(spread).chain(soft).chain(attraction)
    }

    /// The labels whose places have several Nodes: Nodes that agree in all of them are treated alike.
    pub fn shared_keys(&self) -> Vec<KeyId> {
        let mut keys: Vec<KeyId> =
            self.counts().filter(|count| !count.is_of_nodes).map(|count| count.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether Nodes of one place must be looked at one by one.
    pub fn tells_nodes_apart(&self) -> bool {
        let of_nodes = |count: &Count| count.is_of_nodes;
        self.together.iter().any(of_nodes)
            || self.spread.iter().any(|it| of_nodes(&it.count))
            || self.soft_spread.iter().any(|it| it.is_of_nodes || of_nodes(&it.count))
            || self.attraction.iter().any(|(count, _)| of_nodes(count))
    }

    /// The Pods on a Node have changed.
    pub fn follow(&mut self, slot: Slot, index: &NodeIndex) {
        for count in self.counts_mut() {
            count.follow(slot, index);
        }
    }

    /// To be called before questions, after all changes.
    pub fn settle(&mut self) {
        self.is_first = self.means_itself && self.together.iter().all(|count| count.total == 0);
        for spread in &mut self.spread {
            spread.fewest = spread.count.fewest(spread.min_domains);
        }
    }

    /// Whether Pods on a Node can keep it off that Node alone.
    pub fn keeps_apart_on_nodes(&self) -> bool {
        self.anti.iter().chain(&self.avoided).any(|count| count.is_of_nodes)
    }

    /// What only the Pods of the Node itself decide.
    pub fn is_kept_apart_on(&self, slot: Slot, index: &NodeIndex) -> bool {
        let mut apart = self.anti.iter().chain(&self.avoided);
        apart.any(|count| count.is_of_nodes && count.here(slot, index) > 0)
    }

    /// What other Pods say of the Node, as far as all Nodes of its places have it in common
    /// (`of_nodes` false) or not.
    pub fn admits(&self, slot: Slot, index: &NodeIndex, of_nodes: bool) -> bool {
        self.is_together(slot, index, of_nodes)
            && (of_nodes || !self.is_kept_apart(slot, index))
            && self
                .spread
                .iter()
                .all(|it| it.count.is_of_nodes != of_nodes || it.holds(slot, index))
    }

    fn is_together(&self, slot: Slot, index: &NodeIndex, of_nodes: bool) -> bool {
        let mut counts = self.together.iter().filter(|count| count.is_of_nodes == of_nodes);
        counts.all(|count| {
            let is_somewhere = count.domain(slot, index) != NOWHERE;
            is_somewhere && (self.is_first || count.here(slot, index) > 0)
        })
    }

    fn is_kept_apart(&self, slot: Slot, index: &NodeIndex) -> bool {
        let mut apart = self.anti.iter().chain(&self.avoided);
        apart.any(|count| !count.is_of_nodes && count.here(slot, index) > 0)
    }

    /// Why other Pods keep it off the Node: what the first rule that does says.
    pub fn reason(&self, slot: Slot, index: &NodeIndex) -> Option<Reason> {
        if let Some(spread) = self.spread.iter().find(|it| !it.holds(slot, index)) {
            let is_nowhere = spread.count.domain(slot, index) == NOWHERE;
            return Some(if is_nowhere {
                Reason::TopologySpreadLabelMissing
            } else {
                Reason::TopologySpread
            });
        }
        if ![false, true].iter().all(|level| self.is_together(slot, index, *level)) {
            return Some(Reason::PodAffinity);
        }
        let meets = |counts: &[Count]| counts.iter().any(|count| count.here(slot, index) > 0);
        if meets(&self.anti) {
            return Some(Reason::PodAntiAffinity);
        }
        meets(&self.avoided).then_some(Reason::ExistingPodsAntiAffinity)
    }
}

impl HardSpread {
    fn holds(&self, slot: Slot, index: &NodeIndex) -> bool {
        if self.count.domain(slot, index) == NOWHERE {
            return false;
        }
        let matching = self.count.here(slot, index) + i64::from(self.means_itself);
        matching.saturating_sub(self.fewest) <= self.max_skew
    }
}

fn hard_spread(
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

fn soft_spread(
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
