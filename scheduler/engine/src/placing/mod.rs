//! Where a Pod goes, found in as few steps as its kind allows.
//!
//! The plain rules look at every Node and every Pod for each decision. Here, what it would find is kept:
//!
//! ```text
//!   rows       a Node's resources and what Pods take of them         ┐
//!   topology   which Nodes are one place, by label                   │ ground: kept with every event
//!   counters   Pods that a term or selector means, by Node           │
//!   carried    terms of Pods that are on Nodes                       │
//!   log        which Nodes, and which budgets, have changed          ┘
//!   sorts      what Pods with the same selectors and tolerations make of each Node   ┐
//!   statics    the same, with the images that are there                              │ follow the log
//!   standing   how all Nodes stand with one kind of Pod: tournaments of scores       ┘ when asked
//!   outlook    why a kind fits nowhere, and what a preemption costs on each Node
//!   shortage   of what a kind that fits nowhere lacks most
//!   cache      how much of all this is kept
//!   contest    scores that are compared over all Nodes that compete
//! ```
//!
//! It answers as the plain rules do, Node by Node and score by score (`tests/placing.rs`); of what it does not
//! know how to keep, it says so, and the plain rules are asked.

mod asks;
mod balance;
mod budgets;
mod cache;
mod carried;
mod constraints;
mod contest;
mod count;
mod counters;
mod ground;
mod images;
mod kinds;
mod label_readers;
mod log;
mod losses;
mod outlook;
mod quick;
mod ranking;
mod refusal;
mod room;
mod rows;
mod shortage;
mod sorts;
mod standing;
mod statics;
mod topology;
mod tree;

use std::sync::Arc;

use foldhash::fast::FixedState;
use model::{ClusterNode, NodeName, NodeSelector, PodDisruptionBudget, SchedulingSpec};
use rules::{Cluster, Plugin, Rules};

use self::contest::{Arena, Entrant};
use self::ground::Ground;
use self::kinds::{Kind, KindId, Kinds, is_odd};
use self::rows::Slot;
use self::standing::{Basis, Standing};
use self::statics::Statics;
use self::tree::OUT;
use crate::rng::{Draw, Rng};
use crate::wake::Change;

pub use self::cache::CacheLimit;
pub(crate) use self::kinds::KindKey;
pub(crate) use self::label_readers::LabelRead;
pub(crate) use self::refusal::{Chance, Remedy, WhyNowhere};
pub(crate) use self::rows::{is_extreme, three};
pub(crate) use self::shortage::{Lacking, Shortage};
pub(crate) use self::sorts::NodeFilter;

/// For looking things up; nothing is ever read in its order.
pub(crate) type FixedMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// By which rules, in which cluster.
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
    ground: Ground,
    statics: Statics,
    kinds: Kinds,
    arena: Arena,
    questions: u64,
    /// Of these, those of which it was last seen what they had asked about.
    questions_seen: u64,
    limit: CacheLimit,
    /// What all standings and outlooks take, at most: those that were dropped meanwhile still count.
    standing_bytes: usize,
    /// Everything is to be made anew before the next question.
    is_outdated: bool,
}

/// A Pod that names so few Nodes is tried on each of them.
const NAMED_MAX: usize = 16;

impl Placing {
    pub fn new(limit: CacheLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Of a cluster as it is, with each Node in the place that it had.
    pub fn of(cluster: &Cluster, names: Vec<Option<NodeName>>, limit: CacheLimit) -> Self {
        Self { ground: Ground::of(cluster, names), ..Self::new(limit) }
    }

    /// Who has which place.
    pub fn seats(&self) -> &[Option<NodeName>] {
        self.ground.rows.names()
    }

    /// What the Node can take at most: CPU and memory, and Pods.
    pub fn limits_of(&self, node: &NodeName) -> Option<Limits> {
        let row = self.ground.rows.row(self.ground.rows.slot_of(node)?);
        let [cpu_milli, memory_bytes, _] = row.allocatable;
        Some(Limits { cpu_milli, memory_bytes, pods: row.pods_max })
    }

    /// To be called after every change of the cluster.
    pub fn note(&mut self, change: Change<'_>, cluster: &Cluster) {
        self.is_outdated |= self.ground.note(change, cluster);
    }

    /// A PodDisruptionBudget has come, gone or changed.
    pub fn budget_changed(
        &mut self,
        before: Option<&PodDisruptionBudget>,
        after: Option<&PodDisruptionBudget>,
    ) {
        self.ground.budgets.push(before, after);
    }

    /// Other rules hold.
    pub fn reconfigured(&mut self, limit: CacheLimit) {
        self.is_outdated = true;
        self.limit = limit;
    }

    /// The spec as far as any selector can tell it from others.
    pub fn project(&self, scheduling: &Arc<SchedulingSpec>) -> Arc<SchedulingSpec> {
        self.ground.counters.readers.project(scheduling)
    }

    /// What selectors read of labels and did not when this was last called. `None`: too much to be listed.
    pub fn take_newly_read(&mut self) -> Option<Vec<LabelRead>> {
        self.ground.counters.readers.take_newly_read()
    }

    pub fn choose(&mut self, view: View<'_>, key: &KindKey, rng: &mut Rng) -> Choice {
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
        let id = self.kinds.id(key, view, &mut self.ground, &mut self.statics);
        if !self.catch_up(id, view) {
            return Choice::Unknown;
        }
        let winner = self.compete(id, view, rng);
        match winner.and_then(|slot| self.ground.rows.name(slot)) {
            Some(node) => Choice::On(node.clone()),
            None => Choice::Nowhere,
        }
    }

    /// The kind, with everything that questions about single Nodes depend on as of now. `None`: only the
    /// plain rules can tell.
    fn ready(&mut self, view: View<'_>, key: &KindKey) -> Option<KindId> {
        self.tidy(view.cluster);
        if view.cluster.nodes.is_empty() {
            return None;
        }
        let id = self.kinds.id(key, view, &mut self.ground, &mut self.statics);
        if !self.catch_up(id, view) {
            return None;
        }
        if !self.kinds.get(id)?.constraints.are_soft() {
            self.follow(id, view)?;
        }
        Some(id)
    }

    /// The standing of the kind, as of now.
    fn follow(&mut self, id: KindId, view: View<'_>) -> Option<()> {
        let Self { ground, statics, kinds, standing_bytes, .. } = self;
        let kind = kinds.get_mut(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        let known = kind.standing.take();
        let followed = known.and_then(|mut it| it.follow(kind, basis).then_some(it));
        let standing = if let Some(standing) = followed {
            standing
        } else {
            kind.count_anew(view, ground)?;
            let made = Standing::new(kind, Basis { view, ground, of: statics.of(kind.of) });
            *standing_bytes += made.bytes();
            made
        };
        kind.constraints.settle();
        kind.standing = Some(standing);
        Some(())
    }

    /// Everything that the kind depends on is as of now. False: only the plain rules can tell.
    fn catch_up(&mut self, id: KindId, view: View<'_>) -> bool {
        let Self { ground, statics, kinds, questions, .. } = self;
        let Some(kind) = kinds.get_mut(id) else { return false };
        *questions += 1;
        kind.used_at = *questions;
        let mut has_others = kind.constraints.has_lost_term(ground);
        if kind.selectors_at != ground.selectors_changes {
            kind.selectors_at = ground.selectors_changes;
            kind.nowhere = None;
            has_others |= kind.constraints.has_other_siblings(view.cluster, &kind.pod);
        }
        if has_others {
            kind.standing = None;
            kind.counted_at = None;
            if kind.count_anew(view, ground).is_none() {
                return false;
            }
        }
        let Kind { constraints, pod, .. } = kind;
        if constraints.attach_carried(view.rules, view.cluster, pod, ground) {
            kind.standing = None;
            kind.counted_at = None;
        }
        let has_promised = ground.has_promised(kind.pod.priority);
        (kind.constraints.are_soft() || !has_promised)
            && statics.sync(kind.of, view.rules, view.cluster, ground)
    }

    fn compete(&mut self, id: KindId, view: View<'_>, rng: &mut Rng) -> Option<Slot> {
        self.follow(id, view)?;
        let Self { ground, statics, kinds, arena, standing_bytes, .. } = self;
        let kind = kinds.get_mut(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        let mut standing = kind.standing.take()?;
        let winner = pick(kind, &mut standing, basis, arena, rng.draw());
        // Most kinds are never asked about again: little is kept of them until they are.
        let is_new = !std::mem::replace(&mut kind.is_known, true);
        let is_kept = !is_new || standing.is_light() || !kind.constraints.is_empty();
        if is_kept {
            kind.standing = Some(standing);
        } else {
            *standing_bytes = standing_bytes.saturating_sub(standing.bytes());
        }
        winner
    }
}

/// The Nodes that the Pod names, if they are few, as those of a DaemonSet's Pods are. It is tried on each of them, and
/// nothing is remembered of its kind: there is no other Pod of it.
fn few_named<'a>(
    rules: &Rules,
    key: &'a KindKey,
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
    kind: &Kind,
    standing: &mut Standing,
    basis: Basis<'_>,
    arena: &mut Arena,
    draw: Draw,
) -> Option<Slot> {
    let Basis { view, ground, of } = basis;
    let constraints = &kind.constraints;
    let looks_at_nodes = constraints.tells_nodes_apart();
    if let [cell] = standing.cells.as_mut_slice()
        && !looks_at_nodes
        && constraints.is_empty()
    {
        return cell.any_best(draw, kind, basis);
    }
    arena.entrants.clear();
    for (number, cell) in standing.cells.iter_mut().enumerate() {
        if !constraints.admits(cell.slot, ground, false) {
            continue;
        }
        if !looks_at_nodes {
            let best = cell.best(draw, kind, basis);
            if best != OUT {
                arena.entrants.push(Entrant::new(cell.slot, cell.group, best, Some(number)));
            }
            continue;
        }
        for (slot, score) in cell.each() {
            if score != OUT && constraints.admits(slot, ground, true) {
                arena.entrants.push(Entrant::new(slot, cell.group, score, None));
            }
        }
    }
    let winner = arena.winner(kind, view.rules, ground, of, draw)?;
    let Some(number) = winner.cell else { return Some(winner.slot) };
    standing.cells[number].any_best(draw, kind, basis)
}
