//! Running counts: how many Pods on each Node are meant by somebody's term or selector, and how many carry a
//! term of their own. Kept up to date by each Pod that comes or goes; no scan over Pods.

use std::sync::Arc;

use model::{
    AffinityTerms, ClusterPod, LabelSelector, PodAffinityTerm, Shape, WeightedPodAffinityTerm,
};
use oracle::{Cluster, own_term_means};

use super::FixedMap;
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

/// A term of a Pod that is on a Node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Carried {
    KeepAway(PodAffinityTerm),
    /// Affinity that was required when it was placed.
    Together(PodAffinityTerm),
    /// A preference; negative when it would rather be away.
    Prefer(PodAffinityTerm, i64),
}

impl Carried {
    pub fn term(&self) -> &PodAffinityTerm {
        match self {
            Self::KeepAway(term) | Self::Together(term) | Self::Prefer(term, _) => term,
        }
    }
}

/// Pods that count alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ClassKey {
    namespace: Arc<str>,
    shape: Arc<Shape>,
    is_terminating: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    ids: FixedMap<Counted, CounterId>,
    all: Vec<Counter>,
    /// Terms that Pods carry, in the order in which they came: whom they mean is found out once.
    carried: Vec<(CounterId, Carried)>,
    classes: FixedMap<ClassKey, Class>,
    /// Of which labels the terms that Pods carry make something.
    pub readers: LabelReaders,
    /// What the counts take in memory, about.
    bytes: usize,
}

#[derive(Debug)]
struct Counter {
    counted: Counted,
    on_node: Vec<u32>,
}

#[derive(Debug)]
struct Class {
    pods: u32,
    /// Where it counts, and how often.
    counts: Vec<(CounterId, u32)>,
}

impl Counters {
    pub fn on_node(&self, counter: CounterId, slot: Slot) -> u32 {
        self.all[counter].on_node.get(slot as usize).copied().unwrap_or(0)
    }

    pub fn carried(&self) -> &[(CounterId, Carried)] {
        &self.carried
    }

    /// Whether anything that is counted depends on labels of Namespaces.
    pub fn looks_at_namespaces(&self) -> bool {
        let looks = |term: &PodAffinityTerm| term.namespace_selector != LabelSelector::Nothing;
        self.all.iter().any(|counter| match &counter.counted {
            Counted::MeantBy(terms) => terms.iter().any(looks),
            Counted::Matching { .. } => false,
            Counted::Carrying(carried) => looks(carried.term()),
        })
    }

    pub fn len(&self) -> usize {
        self.all.len()
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
        let new = &mut all[id];
        for (key, class) in classes.iter_mut() {
            let times = new.counted.times(cluster, &key.namespace, &key.shape, key.is_terminating);
            if times > 0 {
                class.counts.push((id, times));
            }
        }
        for (pod, node) in cluster.placed() {
            let Some(slot) = rows.slot_of(&node.node.name) else { continue };
            let is_terminating = pod.deletion.is_terminating();
            let times = new.counted.times(cluster, pod.namespace(), &pod.shape, is_terminating);
            new.add(slot, times, 1);
        }
        self.bytes += new.on_node.len() * size_of::<u32>();
        id
    }

    fn add(&mut self, counted: Counted) -> CounterId {
        let id = self.all.len();
        self.all.push(Counter { counted: counted.clone(), on_node: Vec::new() });
        if let Counted::Carrying(carried) = &counted {
            self.carried.push((id, carried.clone()));
        }
        self.ids.insert(counted, id);
        id
    }

    /// A Pod has come to the Node (1) or left it (−1).
    pub fn pod_moved(&mut self, slot: Slot, pod: &ClusterPod, sign: i64, cluster: &Cluster) {
        let is_plain = pod.pod_affinity == model::PodAffinity::default();
        if is_plain && self.all.is_empty() {
            return;
        }
        let key = ClassKey {
            namespace: pod.namespace().clone(),
            shape: pod.shape.clone(),
            is_terminating: pod.deletion.is_terminating(),
        };
        if !self.classes.contains_key(&key) {
            let class = self.class_of(&key, cluster);
            self.readers.count_terms(&key.shape.pod_affinity, true);
            self.classes.insert(key.clone(), class);
        }
        let Self { all, classes, readers, .. } = self;
        let Some(class) = classes.get_mut(&key) else { return };
        for (counter, times) in &class.counts {
            all[*counter].add(slot, *times, sign);
        }
        class.pods = if sign > 0 { class.pods + 1 } else { class.pods.saturating_sub(1) };
        if class.pods == 0 {
            readers.count_terms(&key.shape.pod_affinity, false);
            classes.remove(&key);
        }
    }

    fn class_of(&mut self, key: &ClassKey, cluster: &Cluster) -> Class {
        for carried in carried_by(&key.shape) {
            let counted = Counted::Carrying(carried);
            if !self.ids.contains_key(&counted) {
                // Nobody has carried it before, so there is nothing to count yet.
                self.add(counted);
            }
        }
        let counters = self.all.iter().enumerate();
        let counts = counters.filter_map(|(id, counter)| {
            let counted = &counter.counted;
            let times = counted.times(cluster, &key.namespace, &key.shape, key.is_terminating);
            (times > 0).then_some((id, times))
        });
        Class { pods: 0, counts: counts.collect() }
    }
}

impl Counter {
    fn add(&mut self, slot: Slot, times: u32, sign: i64) {
        if times == 0 {
            return;
        }
        if self.on_node.len() <= slot as usize {
            self.on_node.resize(slot as usize + 1, 0);
        }
        let count = &mut self.on_node[slot as usize];
        *count = if sign > 0 { *count + times } else { count.saturating_sub(times) };
    }
}

impl Counted {
    /// How often such a Pod is counted.
    fn times(
        &self,
        cluster: &Cluster,
        namespace: &Arc<str>,
        shape: &Shape,
        is_terminating: bool,
    ) -> u32 {
        match self {
            Self::MeantBy(terms) => {
                let means = |term| own_term_means(cluster, term, namespace, &shape.labels);
                u32::from(terms.iter().all(means))
            }
            Self::Matching { namespace: own, selector } => {
                u32::from(!is_terminating && own == namespace && selector.matches(&shape.labels))
            }
            Self::Carrying(carried) => {
                let same = carried_by(shape).filter(|other| other == carried).count();
                u32::try_from(same).unwrap_or(u32::MAX)
            }
        }
    }
}

/// The terms that a Pod on a Node carries, but for lists that cannot be parsed.
fn carried_by(shape: &Shape) -> impl Iterator<Item = Carried> + '_ {
    let affinity = &shape.pod_affinity;
    let keep_away = affinity.anti_required.usable().iter().cloned().map(Carried::KeepAway);
    let together = affinity.required.usable().iter().cloned().map(Carried::Together);
    let prefer = |sign: i64| {
        move |weighted: &WeightedPodAffinityTerm| {
            Carried::Prefer(weighted.term.clone(), sign * i64::from(weighted.weight))
        }
    };
    let near = affinity.preferred.usable().iter().map(prefer(1));
    let away = affinity.anti_preferred.usable().iter().map(prefer(-1));
    keep_away.chain(together).chain(near).chain(away)
}
