//! The quick form of the rules: finds a Node for a Pod without a look at every Node and every Pod.
//!
//! The plain rules evaluate the whole cluster for each decision. This module keeps what they would find, for each
//! class of interchangeable Pods:
//!
//! ```text
//!   node_index     the state of all Nodes, updated with every event:
//!     rows           a Node's resources and what its Pods take of them
//!     topology       which Nodes share a value of a label
//!     counters       Pods that a term or selector matches, by Node
//!     attached       volumes that CSI drivers have attached, where that is limited
//!     labelled       Nodes by the labels that volumes are found by
//!     carried        affinity terms of Pods that are on Nodes
//!     log            which Nodes, and which budgets, have changed
//!   pod_classes    everything that is kept for one class of Pods; these follow the log when they are asked for:
//!     node_filter_classes   what Pods with the same selectors and tolerations make of each Node
//!     statics               the same, with the images that are there
//!     score_cache           the scores of all Nodes, in a tournament
//!     unschedulable_cache   why no Node fits, and what a preemption costs on each
//!     shortage              the resource that most Nodes lack
//!   plugins/       the quick form of each plugin, used by
//!     node_fit       what looks at one Node by itself: resources, ports
//!     constraints    what looks at other Pods
//!     normalizer     scores that are normalized over all feasible Nodes
//!   volumes        the quick form of the plugins of volumes
//!   devices        the quick form of DynamicResources
//!   cache          the limit on all of these
//! ```
//!
//! Results are the same as those of the plain rules, Node by Node and score by score (`tests/placing/`). What this
//! module cannot keep it reports as unknown, and the plain rules decide.

mod attached;
mod budgets;
mod cache;
mod capacity;
mod carried;
mod constraints;
mod count;
mod counters;
mod devices;
mod diagnosis;
mod images;
mod label_readers;
mod labelled;
mod log;
mod node_filter_classes;
mod node_fit;
mod node_index;
mod normalizer;
mod plugins;
mod pod_classes;
mod quick;
mod ranking;
mod rows;
mod score_cache;
mod shortage;
mod statics;
mod topology;
mod tree;
mod unschedulable_cache;
mod victim_costs;
mod volumes;

use std::sync::Arc;

use foldhash::fast::FixedState;
use model::{ClusterNode, NodeName, NodeSelector, PodDisruptionBudget, SchedulingSpec};
use rules::{Cluster, Plugin, Rules};

use self::node_index::NodeIndex;
use self::normalizer::{Normalizer, ScoredNode};
use self::pod_classes::{PodClass, PodClassId, PodClasses, is_odd};
use self::rows::Slot;
use self::score_cache::{Context, ScoreCache};
use self::statics::Statics;
use self::tree::INFEASIBLE;
use crate::rng::{Draw, Rng};
use crate::wake::ClusterChange;

pub use self::cache::CacheLimit;
pub(crate) use self::diagnosis::{Chance, Diagnosis, PreemptionResult};
pub(crate) use self::label_readers::LabelRead;
pub(crate) use self::node_filter_classes::NodeFilter;
pub(crate) use self::pod_classes::PodClassKey;
pub(crate) use self::rows::{is_extreme, three};
pub(crate) use self::shortage::{Lacking, Shortage};

/// For looking things up; nothing is ever read in its order.
pub(crate) type FixedMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// The rules of a profile, and the cluster they are applied to.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub rules: &'a Rules,
    pub cluster: &'a Cluster,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// One of the best.
    On(NodeName),
    Nowhere,
    /// Only the plain rules can tell.
    Unknown,
}

/// What a Node can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    pub pods: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Placing {
    index: NodeIndex,
    statics: Statics,
    classes: PodClasses,
    normalizer: Normalizer,
    questions: u64,
    /// The value of `questions` when unused classes were last dropped.
    questions_seen: u64,
    limit: CacheLimit,
    /// The memory of all score and unschedulable caches, at most: those dropped meanwhile still count.
    cache_bytes: usize,
    /// Everything has to be rebuilt before the next question.
    is_outdated: bool,
}

/// A Pod that names so few Nodes is tried on each of them.
const NAMED_MAX: usize = 16;

impl Placing {
    pub fn new(limit: CacheLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Rebuilt from a cluster, with each Node in the slot that it had.
    pub fn of(cluster: &Cluster, names: Vec<Option<NodeName>>, limit: CacheLimit) -> Self {
        Self { index: NodeIndex::of(cluster, names), ..Self::new(limit) }
    }

    /// The Node in each slot.
    pub fn seats(&self) -> &[Option<NodeName>] {
        self.index.rows.names()
    }

    /// What the Node can take at most: CPU and memory, and Pods.
    pub fn limits_of(&self, node: &NodeName) -> Option<Limits> {
        let row = self.index.rows.row(self.index.rows.slot_of(node)?);
        let [cpu_milli, memory_bytes, _] = row.allocatable;
        Some(Limits { cpu_milli, memory_bytes, pods: row.pods_max })
    }

    /// To be called after every change of the cluster.
    pub fn note(&mut self, change: ClusterChange<'_>, cluster: &Cluster) {
        self.is_outdated |= self.index.note(change, cluster);
    }

    /// A PodDisruptionBudget has come, gone or changed.
    pub fn budget_changed(
        &mut self,
        before: Option<&PodDisruptionBudget>,
        after: Option<&PodDisruptionBudget>,
    ) {
        self.index.budgets.push(before, after);
    }

    /// The settings have changed.
    pub fn reconfigured(&mut self, limit: CacheLimit) {
        self.is_outdated = true;
        self.limit = limit;
    }

    /// The spec as far as any selector can tell it from others.
    pub fn project(&self, scheduling: &Arc<SchedulingSpec>) -> Arc<SchedulingSpec> {
        self.index.counters.readers.project(scheduling)
    }

    /// What selectors read of labels and did not when this was last called. `None`: too much to be listed.
    pub fn take_newly_read(&mut self) -> Option<Vec<LabelRead>> {
        self.index.counters.readers.take_newly_read()
    }

    pub fn choose(&mut self, view: View<'_>, key: &PodClassKey, rng: &mut Rng) -> Choice {
        self.tidy(view.cluster);
        if view.cluster.nodes.is_empty() {
            return Choice::Unknown;
        }
        if let Some(named) = few_named(view.rules, key) {
            let pod = key.as_pod();
            if is_odd(view.rules, &pod) {
                return Choice::Unknown;
            }
            let nodes = named.filter_map(|name| view.cluster.nodes.get(name));
            let takes_it = |node: &&ClusterNode| {
                rules::filter(view.rules, view.cluster, &pod, node).is_empty()
            };
            let mut feasible = nodes.filter(takes_it).map(|node| &node.node.name);
            let Some(first) = feasible.next() else { return Choice::Unknown };
            if feasible.all(|other| other == first) {
                return Choice::On(first.clone());
            }
        }
        let id = self.classes.id(key, view, &mut self.index, &mut self.statics);
        if !self.catch_up(id, view) {
            return Choice::Unknown;
        }
        let winner = self.compete(id, view, rng);
        match winner.and_then(|slot| self.index.rows.name(slot)) {
            Some(node) => Choice::On(node.clone()),
            None => Choice::Nowhere,
        }
    }

    /// The class, with everything that questions about single Nodes depend on brought up to date. `None`: only the
    /// plain rules can tell.
    fn ready(&mut self, view: View<'_>, key: &PodClassKey) -> Option<PodClassId> {
        self.tidy(view.cluster);
        if view.cluster.nodes.is_empty() {
            return None;
        }
        let id = self.classes.id(key, view, &mut self.index, &mut self.statics);
        if !self.catch_up(id, view) {
            return None;
        }
        if !self.classes.get(id)?.constraints.are_soft() {
            self.follow(id, view)?;
        }
        Some(id)
    }

    /// Brings the score cache of the class up to date.
    fn follow(&mut self, id: PodClassId, view: View<'_>) -> Option<()> {
        let Self { index, statics, classes, cache_bytes, .. } = self;
        let class = classes.get_mut(id)?;
        let context = Context { view, index, groups: statics.of(class.static_id) };
        let known = class.score_cache.take();
        let followed = known.and_then(|mut it| it.follow(class, context).then_some(it));
        let score_cache = if let Some(score_cache) = followed {
            score_cache
        } else {
            class.count_anew(view, index)?;
            class.forget_all_devices(index);
            class.look_at_all_volumes(Context { view, index, groups: statics.of(class.static_id) });
            let made = ScoreCache::new(
                class,
                Context { view, index, groups: statics.of(class.static_id) },
            );
            *cache_bytes += made.bytes();
            made
        };
        class.constraints.settle();
        class.score_cache = Some(score_cache);
        Some(())
    }

    /// Brings everything that the class depends on up to date. False: only the plain rules can tell.
    fn catch_up(&mut self, id: PodClassId, view: View<'_>) -> bool {
        let Self { index, statics, classes, questions, .. } = self;
        let Some(class) = classes.get_mut(id) else { return false };
        *questions += 1;
        class.used_at = *questions;
        class.follow_devices(index);
        let mut has_others = class.constraints.affinity.has_lost_term(index);
        if class.selectors_at != index.selectors_changes {
            class.selectors_at = index.selectors_changes;
            class.diagnosis = None;
            has_others |= class.constraints.has_other_siblings(view.cluster, &class.pod);
        }
        if has_others {
            class.score_cache = None;
            class.counted_at = None;
            if class.count_anew(view, index).is_none() {
                return false;
            }
        }
        let PodClass { constraints, pod, .. } = class;
        if constraints.affinity.attach_carried(view.rules, view.cluster, pod, index) {
            class.score_cache = None;
            class.counted_at = None;
        }
        let has_nominated = index.has_nominated(class.pod.priority);
        // What nominated Pods take beyond capacity is not counted.
        let counts_capacity_only = class.constraints.are_soft() && !class.has_claims();
        (counts_capacity_only || !has_nominated)
            && statics.sync(class.static_id, view.rules, view.cluster, index)
    }

    fn compete(&mut self, id: PodClassId, view: View<'_>, rng: &mut Rng) -> Option<Slot> {
        self.follow(id, view)?;
        let Self { index, statics, classes, normalizer, cache_bytes, .. } = self;
        let class = classes.get_mut(id)?;
        let context = Context { view, index, groups: statics.of(class.static_id) };
        let mut score_cache = class.score_cache.take()?;
        let winner = pick(class, &mut score_cache, context, normalizer, rng.draw());
        // Most classes are used once: little is kept for them until they are used again.
        let is_new = !std::mem::replace(&mut class.is_known, true);
        let is_kept = !is_new || score_cache.is_light() || !class.constraints.is_empty();
        if is_kept {
            class.score_cache = Some(score_cache);
        } else {
            *cache_bytes = cache_bytes.saturating_sub(score_cache.bytes());
        }
        winner
    }
}

/// The Nodes that the Pod names, if they are few, as those of a DaemonSet's Pods are. It is tried on each of them, and
/// nothing is kept of its class: it has no other Pod.
fn few_named<'a>(
    rules: &Rules,
    key: &'a PodClassKey,
) -> Option<impl Iterator<Item = &'a NodeName> + Clone> {
    let scheduling = &key.scheduling;
    let asks_of_pods =
        !scheduling.pod_affinity.is_empty() || !scheduling.topology_spread.is_empty();
    if asks_of_pods || !rules.filters_by(Plugin::NodeAffinity) {
        return None;
    }
    let named = scheduling.node_affinity.required.as_ref().and_then(NodeSelector::each_named);
    named.filter(|named| named.clone().count() <= NAMED_MAX)
}

/// One of the best Nodes.
fn pick(
    class: &PodClass,
    score_cache: &mut ScoreCache,
    context: Context<'_>,
    normalizer: &mut Normalizer,
    draw: Draw,
) -> Option<Slot> {
    let Context { view, index, groups } = context;
    let constraints = &class.constraints;
    let looks_at_nodes = constraints.tells_nodes_apart();
    if let [cell] = score_cache.cells.as_mut_slice()
        && !looks_at_nodes
        && constraints.is_empty()
        && class.device_scores().len() <= 1
    {
        return cell.any_best(0, draw, class, context);
    }
    normalizer.nodes.clear();
    for (number, cell) in score_cache.cells.iter_mut().enumerate() {
        if !constraints.admits(cell.slot, index, false) {
            continue;
        }
        if !looks_at_nodes {
            for rank in 0..cell.rankings() {
                let best = cell.best(rank, draw, class, context);
                if best == INFEASIBLE {
                    continue;
                }
                let of_devices = class.device_scores().get(rank).copied().unwrap_or(0);
                let node = ScoredNode::new(cell.slot, cell.group, best, Some((number, rank)));
                normalizer.nodes.push(ScoredNode { of_devices, ..node });
            }
            continue;
        }
        for (slot, score) in cell.each() {
            if score != INFEASIBLE && constraints.admits(slot, index, true) {
                let of_devices = class.device_score(slot, context);
                let node = ScoredNode::new(slot, cell.group, score, None);
                normalizer.nodes.push(ScoredNode { of_devices, ..node });
            }
        }
    }
    let winner = normalizer.winner(class, view.rules, index, groups, draw)?;
    let Some((number, rank)) = winner.cell else { return Some(winner.slot) };
    score_cache.cells[number].any_best(rank, draw, class, context)
}
