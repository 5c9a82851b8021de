//! Running counts: how many Pods on each Node some term or selector matches, and how many carry a
//! term of their own. Kept up to date by each Pod that comes or goes; no scan over Pods.

use std::sync::Arc;

use model::{ClusterPod, LabelSelector, PodAffinityTerm, SchedulingSpec};
use rules::{Cluster, own_term_matches};

use super::FixedMap;
use super::carried::{Carried, CarriedTerms, TermId, carried_by};
use super::label_readers::LabelReaders;
use super::rows::{Rows, Slot};

pub(super) type CounterId = usize;

/// Which Pods are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counted {
    /// Those that all these terms mean together. Never empty.
    MeantBy(Vec<PodAffinityTerm>),
    /// Those of the namespace that the selector matches and that are not on their way out.
    Matching { namespace: Arc<str>, selector: LabelSelector },
    /// Those that carry this term, as often as they do.
    Carrying(Carried),
}

/// Pods that every counter counts alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountedClassKey {
    namespace: Arc<str>,
    scheduling: Arc<SchedulingSpec>,
    is_terminating: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    ids: FixedMap<Counted, CounterId>,
    all: Vec<Counter>,
    /// Places of counters that are gone.
    free: Vec<CounterId>,
    pub carried: CarriedTerms,
    classes: FixedMap<CountedClassKey, CountedClass>,
    /// The labels that the terms of Pods on Nodes read.
    pub readers: LabelReaders,
    /// What the counts take in memory, about.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Counter {
    /// `None`: it is gone.
    counted: Option<Counted>,
    on_node: Vec<u32>,
    /// Of a term that Pods carry.
    carriers: Option<Carriers>,
}

#[derive(Debug)]
struct Carriers {
    term: TermId,
    /// How many classes of Pods carry it.
    classes: u32,
}

#[derive(Debug)]
struct CountedClass {
    pods: u32,
    /// Where it counts, and how often.
    counts: Vec<(CounterId, u32)>,
}

impl Counters {
    pub fn on_node(&self, counter: CounterId, slot: Slot) -> u32 {
        self.all[counter].on_node.get(slot as usize).copied().unwrap_or(0)
    }

    /// Whether anything that is counted depends on labels of Namespaces.
    pub fn looks_at_namespaces(&self) -> bool {
        let looks = |term: &PodAffinityTerm| term.namespace_selector != LabelSelector::Nothing;
        self.ids.keys().any(|counted| match counted {
            Counted::MeantBy(terms) => terms.iter().any(looks),
            Counted::Matching { .. } => false,
            Counted::Carrying(carried) => looks(carried.term()),
        })
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// What is counted of Nodes, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The counter of these Pods, kept from now on.
    pub fn counter(&mut self, counted: Counted, rows: &Rows, cluster: &Cluster) -> CounterId {
        if let Some(id) = self.ids.get(&counted) {
            return *id;
        }
        let id = self.add(counted);
        let Self { all, classes, .. } = self;
        let Counter { counted: Some(counted), on_node, .. } = &mut all[id] else { return id };
        for (key, class) in classes.iter_mut() {
            let times = counted.times(cluster, &key.namespace, &key.scheduling, key.is_terminating);
            if times > 0 {
                class.counts.push((id, times));
            }
        }
        for (pod, node) in cluster.placed() {
            let Some(slot) = rows.slot_of(&node.node.name) else { continue };
            let is_terminating = pod.deletion.is_terminating();
            let times = counted.times(cluster, pod.namespace(), &pod.scheduling, is_terminating);
            add(on_node, slot, times, 1);
        }
        self.bytes += on_node.len() * size_of::<u32>();
        id
    }

    fn add(&mut self, counted: Counted) -> CounterId {
        let id = self.free.pop().unwrap_or(self.all.len());
        if id == self.all.len() {
            self.all.push(Counter::default());
        }
        if let Counted::Carrying(carried) = &counted {
            let term = self.carried.add(id, carried.clone());
            self.all[id].carriers = Some(Carriers { term, classes: 0 });
        }
        self.all[id].counted = Some(counted.clone());
        self.ids.insert(counted, id);
        id
    }

    /// A Pod has come to the Node (1) or left it (−1).
    pub fn pod_moved(&mut self, slot: Slot, pod: &ClusterPod, sign: i64, cluster: &Cluster) {
        let is_plain = pod.pod_affinity == model::PodAffinity::default();
        if is_plain && self.all.is_empty() {
            return;
        }
        let key = CountedClassKey {
            namespace: pod.namespace().clone(),
            scheduling: pod.scheduling.clone(),
            is_terminating: pod.deletion.is_terminating(),
        };
        if !self.classes.contains_key(&key) {
            let class = self.class_of(&key, cluster);
            self.readers.count_terms(&key.scheduling.pod_affinity, true);
            self.classes.insert(key.clone(), class);
        }
        let Self { all, classes, .. } = self;
        let Some(class) = classes.get_mut(&key) else { return };
        for (counter, times) in &class.counts {
            add(&mut all[*counter].on_node, slot, *times, sign);
        }
        class.pods = if sign > 0 { class.pods + 1 } else { class.pods.saturating_sub(1) };
        if class.pods == 0 {
            self.forget(&key);
        }
    }

    /// The last Pod of a class has gone, and with it the terms that no other class carries.
    fn forget(&mut self, key: &CountedClassKey) {
        let Some(class) = self.classes.remove(key) else { return };
        self.readers.count_terms(&key.scheduling.pod_affinity, false);
        for (id, _) in class.counts {
            let Some(carriers) = &mut self.all[id].carriers else { continue };
            carriers.classes -= 1;
            if carriers.classes > 0 {
                continue;
            }
            self.carried.remove(carriers.term);
            if let Some(counted) = std::mem::take(&mut self.all[id]).counted {
                self.ids.remove(&counted);
            }
            self.free.push(id);
        }
    }

    fn class_of(&mut self, key: &CountedClassKey, cluster: &Cluster) -> CountedClass {
        for carried in carried_by(&key.scheduling) {
            let counted = Counted::Carrying(carried);
            if !self.ids.contains_key(&counted) {
                // No Pod on a Node carries it, so there is nothing to count yet.
                self.add(counted);
            }
        }
        let mut counts = Vec::new();
        for (id, counter) in self.all.iter_mut().enumerate() {
            let Some(counted) = &counter.counted else { continue };
            let times = counted.times(cluster, &key.namespace, &key.scheduling, key.is_terminating);
            if times == 0 {
                continue;
            }
            if let Some(carriers) = &mut counter.carriers {
                carriers.classes += 1;
            }
            counts.push((id, times));
        }
        CountedClass { pods: 0, counts }
    }
}

fn add(on_node: &mut Vec<u32>, slot: Slot, times: u32, sign: i64) {
    if times == 0 {
        return;
    }
    if on_node.len() <= slot as usize {
        on_node.resize(slot as usize + 1, 0);
    }
    let count = &mut on_node[slot as usize];
    *count = if sign > 0 { *count + times } else { count.saturating_sub(times) };
}

impl Counted {
    /// How often such a Pod is counted.
    fn times(
        &self,
        cluster: &Cluster,
        namespace: &Arc<str>,
        scheduling: &SchedulingSpec,
        is_terminating: bool,
    ) -> u32 {
        match self {
            Self::MeantBy(terms) => {
                let means = |term| own_term_matches(cluster, term, namespace, &scheduling.labels);
                u32::from(terms.iter().all(means))
            }
            Self::Matching { namespace: own, selector } => u32::from(
                !is_terminating && own == namespace && selector.matches(&scheduling.labels),
            ),
            Self::Carrying(carried) => {
                let same = carried_by(scheduling).filter(|other| other == carried).count();
                u32::try_from(same).unwrap_or(u32::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::ObjectKey;

    use super::super::carried::TermsAt;
    use super::*;
    use crate::testkit::scheduling;

    /// A Pod that keeps away from the Pods of an app.
    fn carrier(cpu: i64, app: usize) -> ClusterPod {
        let selector = LabelSelector::of_labels(&[("app".into(), app.to_string().into())].into());
        let term = PodAffinityTerm::new(&"team-a".into(), "zone", selector, BTreeSet::new(), None);
        let mut pod = ClusterPod::new(ObjectKey::new("team-a", "p"), "uid".into());
        let mut scheduling = scheduling(cpu, 0);
        scheduling.pod_affinity.anti_required.push(term);
        pod.scheduling = Arc::new(scheduling);
        pod
    }

    fn carried(counters: &Counters) -> usize {
        counters.carried.since(TermsAt::default()).count()
    }

    #[test]
    fn a_term_is_there_while_some_pod_carries_it() {
        let (mut counters, cluster) = (Counters::default(), Cluster::default());
        let (one, other) = (carrier(100, 1), carrier(200, 1));
        for (slot, pod, sign) in [(0, &one, 1), (1, &one, 1), (1, &other, 1), (0, &one, -1)] {
            counters.pod_moved(slot, pod, sign, &cluster);
            assert_eq!(carried(&counters), 1);
        }
        counters.pod_moved(1, &one, -1, &cluster);
        assert_eq!(carried(&counters), 1, "another Pod carries the same term");
        counters.pod_moved(1, &other, -1, &cluster);
        assert_eq!(carried(&counters), 0);
        counters.pod_moved(1, &other, 1, &cluster);
        assert_eq!(carried(&counters), 1);
    }

    #[test]
    fn nothing_is_left_of_terms_that_came_and_went() {
        let (mut counters, cluster) = (Counters::default(), Cluster::default());
        let matching =
            Counted::Matching { namespace: "team-a".into(), selector: LabelSelector::EVERYTHING };
        let all = counters.counter(matching, &Rows::default(), &cluster);
        for app in 0..1000 {
            let pod = carrier(100, app);
            counters.pod_moved(0, &pod, 1, &cluster);
            assert_eq!((counters.on_node(all, 0), carried(&counters)), (1, 1));
            counters.pod_moved(0, &pod, -1, &cluster);
        }
        assert_eq!(
            (counters.len(), counters.all.len()),
            (1, 2),
            "the place of the last is used again"
        );
        assert_eq!(counters.on_node(all, 0), 0);
    }
}
