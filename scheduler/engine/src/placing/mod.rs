//! Where a Pod goes, found in as few steps as its kind allows.
//!
//! The oracle looks at every Node and every Pod for each decision. Here, what it would find is kept:
//!
//! ```text
//!   rows       a Node's resources and what Pods take of them         ┐
//!   topology   which Nodes are one place, by label                   │ ground: kept with every event
//!   counters   Pods that a term or selector means, by Node           │
//!   log        which Nodes, and which budgets, have changed          ┘
//!   statics    what Pods with the same selectors and tolerations make of each Node   ┐ follow the log
//!   standing   how all Nodes stand with one kind of Pod: tournaments of scores       ┘ when asked
//!   outlook    why a kind fits nowhere, and what a preemption costs on each Node
//!   contest    scores that are compared over all Nodes that compete
//! ```
//!
//! It answers as the oracle does, Node by Node and score by score (`tests/placing.rs`); of what it does not
//! know how to keep, it says so, and the oracle is asked.

mod asks;
mod balance;
mod budgets;
mod constraints;
mod contest;
mod count;
mod counters;
mod ground;
mod images;
mod kinds;
mod log;
mod losses;
mod outlook;
mod refusal;
mod room;
mod rows;
mod standing;
mod statics;
mod topology;
mod tree;

use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use model::{ClusterNode, NodeName, NodeSelector, PodAffinity, PodDisruptionBudget};
use oracle::{Cluster, Plugin, Rules};

use self::contest::{Arena, Entrant};
use self::ground::Ground;
use self::kinds::{Kind, KindId, Kinds, is_odd};
use self::outlook::Outlook;
use self::rows::Slot;
use self::standing::{Basis, Standing};
use self::statics::Statics;
use self::tree::OUT;
use crate::rng::Rng;
use crate::wake::Change;

pub(crate) use self::kinds::KindKey;
pub(crate) use self::refusal::{Chance, Remedy, WhyNowhere};

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
    /// Only the oracle can tell.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct Placing {
    ground: Ground,
    statics: Statics,
    kinds: Kinds,
    arena: Arena,
    questions: u64,
    /// Everything is to be made anew before the next question.
    is_outdated: bool,
}

/// What kinds remember, together.
const STANDING_BYTES_MAX: usize = 1 << 30;
/// Kinds, sorts of Nodes and counters that are remembered: beyond this all are forgotten, since nobody knows which of
/// them will be asked for again.
const REMEMBERED_MAX: usize = 1 << 17;
/// A Pod that names so few Nodes is tried on each of them.
const NAMED_MAX: usize = 16;

impl Placing {
    /// Of a cluster as it is, with each Node in the place that it had.
    pub fn of(cluster: &Cluster, names: Vec<Option<NodeName>>) -> Self {
        Self { ground: Ground::of(cluster, names), ..Self::default() }
    }

    /// Who has which place.
    pub fn seats(&self) -> &[Option<NodeName>] {
        self.ground.rows.names()
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
    pub fn reconfigured(&mut self) {
        self.is_outdated = true;
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
            let nodes = named.iter().filter_map(|name| view.cluster.nodes.get(name));
            let takes_it = |node: &&ClusterNode| {
                oracle::filter(view.rules, view.cluster, &pod, node).is_empty()
            };
            let mut feasible = nodes.filter(takes_it);
            match (feasible.next(), feasible.next()) {
                (None, _) => return Choice::Unknown,
                (Some(only), None) => return Choice::On(only.node.name.clone()),
                (Some(_), Some(_)) => {}
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
    /// oracle can tell.
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
        let Self { ground, statics, kinds, .. } = self;
        let kind = kinds.get_mut(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        let known = kind.standing.take();
        let followed = known.and_then(|mut it| it.follow(kind, basis).then_some(it));
        let standing = if let Some(standing) = followed {
            standing
        } else {
            kind.count_anew(view, ground)?;
            Standing::new(kind, Basis { view, ground, of: statics.of(kind.of) })
        };
        kind.constraints.settle();
        kind.standing = Some(standing);
        Some(())
    }

    /// Everything that the kind depends on is as of now. False: only the oracle can tell.
    fn catch_up(&mut self, id: KindId, view: View<'_>) -> bool {
        let Self { ground, statics, kinds, questions, .. } = self;
        let Some(kind) = kinds.get_mut(id) else { return false };
        *questions += 1;
        kind.used_at = *questions;
        if kind.selectors_at != ground.selectors_changes {
            kind.selectors_at = ground.selectors_changes;
            kind.nowhere = None;
            if kind.constraints.has_other_siblings(view.cluster, &kind.pod) {
                kind.standing = None;
                kind.counted_at = None;
                if kind.count_anew(view, ground).is_none() {
                    return false;
                }
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
        let Self { ground, statics, kinds, arena, .. } = self;
        let kind = kinds.get_mut(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        arena.entrants.clear();
        let is_new = !std::mem::replace(&mut kind.is_known, true);
        if is_new && kind.constraints.is_empty() {
            // Most kinds are never asked about again: nothing is built for it yet.
            for slot in ground.rows.slots() {
                let score = kind.score(slot, basis);
                if score != OUT {
                    let group = basis.of.group(slot).unwrap_or(0);
                    arena.entrants.push(Entrant::new(slot, group, score, 1, None));
                }
            }
            return arena.winner(kind, view.rules, ground, basis.of, rng).map(|it| it.slot);
        }
        self.follow(id, view)?;
        let Self { ground, statics, kinds, arena, .. } = self;
        let kind = kinds.get(id)?;
        let basis = Basis { view, ground, of: statics.of(kind.of) };
        pick(kind, kind.standing.as_ref()?, basis, arena, rng)
    }

    /// Forgets what has become too much.
    fn tidy(&mut self, cluster: &Cluster) {
        let remembered = self.kinds.len() + self.statics.len() + self.ground.counters.len();
        if self.is_outdated || remembered > REMEMBERED_MAX || self.ground.is_overgrown() {
            *self = Self::of(cluster, self.seats().to_vec());
            return;
        }
        if !self.questions.is_multiple_of(256) {
            return;
        }
        let mut bytes: usize = 0;
        let mut standings: Vec<&mut Kind> = self.kinds.standings().collect();
        standings.sort_by_key(|kind| std::cmp::Reverse(kind.used_at));
        for kind in standings {
            bytes += kind.standing.as_ref().map_or(0, Standing::bytes);
            bytes += kind.outlook.as_ref().map_or(0, Outlook::bytes);
            if bytes > STANDING_BYTES_MAX {
                (kind.standing, kind.outlook) = (None, None);
            }
        }
    }
}

/// The Nodes that the Pod names, if they are few, as those of a DaemonSet's Pods are. It is tried on each of them, and
/// nothing is remembered of its kind: there is no other Pod of it.
fn few_named(rules: &Rules, key: &KindKey) -> Option<BTreeSet<NodeName>> {
    let shape = &key.shape;
    let asks_of_pods = shape.pod_affinity != PodAffinity::default();
    if asks_of_pods || !shape.topology_spread.is_empty() || !rules.filters_by(Plugin::NodeAffinity)
    {
        return None;
    }
    let named = shape.node_affinity.required.as_ref().and_then(NodeSelector::named_nodes);
    named.filter(|named| named.len() <= NAMED_MAX)
}

/// One of the best Nodes.
fn pick(
    kind: &Kind,
    standing: &Standing,
    basis: Basis<'_>,
    arena: &mut Arena,
    rng: &mut Rng,
) -> Option<Slot> {
    let Basis { view, ground, of } = basis;
    let constraints = &kind.constraints;
    let looks_at_nodes = constraints.tells_nodes_apart();
    if let [cell] = standing.cells.as_slice()
        && !looks_at_nodes
        && constraints.is_empty()
    {
        return cell.tree.any_best(rng).map(|leaf| cell.slot_of(leaf));
    }
    for (number, cell) in standing.cells.iter().enumerate() {
        let best = cell.tree.best();
        if best == OUT || !constraints.admits(cell.slot, ground, false) {
            continue;
        }
        if !looks_at_nodes {
            let nodes = cell.tree.running();
            arena.entrants.push(Entrant::new(cell.slot, cell.group, best, nodes, Some(number)));
            continue;
        }
        for (leaf, score) in cell.tree.scores().iter().enumerate() {
            let slot = cell.slot_of(leaf);
            if *score != OUT && constraints.admits(slot, ground, true) {
                arena.entrants.push(Entrant::new(slot, cell.group, *score, 1, None));
            }
        }
    }
    let winner = arena.winner(kind, view.rules, ground, of, rng)?;
    let Some(number) = winner.cell else { return Some(winner.slot) };
    let cell = &standing.cells[number];
    cell.tree.any_best(rng).map(|leaf| cell.slot_of(leaf))
}
