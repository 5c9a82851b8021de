//! The scores of all Nodes for one class of Pods, updated as Nodes change.

use std::ops::Range;

use super::FixedMap;
use super::NodeIndex;
use super::View;
use super::log::{Changed, Position};
use super::pod_classes::PodClass;
use super::ranking::{BATCH, Ranking, Score};
use super::rows::Slot;
use super::statics::{NodeGroups, Numbering};
use super::topology::{Domain, KeyId};
use super::tree::INFEASIBLE;
use crate::rng::Draw;

/// Nodes that differ for the class only in what each has by itself.
#[derive(Debug)]
pub(super) struct Cell {
    pub group: usize,
    /// The first of them: what they have in common can be asked of it.
    pub slot: Slot,
    ranks: Ranks,
    /// The Node of each leaf. Empty: each Node has the leaf of its own slot.
    slots: Vec<Slot>,
}

#[derive(Debug)]
enum Ranks {
    /// Of a class for which only the best of a cell counts.
    Best(Ranking),
    /// Of a class whose Nodes have devices of several scores: the same for each of those.
    BestByDevices(Vec<Ranking>),
    /// Of a class that looks at Nodes one by one: the score of each.
    Each(Vec<i16>),
}

/// In no cell.
const NONE: (u32, u32) = (u32::MAX, 0);

#[derive(Debug)]
pub(super) struct ScoreCache {
    pub cells: Vec<Cell>,
    /// Cell and leaf of each Node. Empty: all are in the only cell, each in its own place.
    of: Vec<(u32, u32)>,
    at: Position,
    numbering: Numbering,
}

/// What scores and diagnoses of a class are computed from.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub view: View<'a>,
    pub index: &'a NodeIndex,
    pub groups: NodeGroups<'a>,
}

/// Scores the Nodes of a cell.
#[derive(Clone, Copy)]
struct Scoring<'a> {
    class: &'a PodClass,
    context: Context<'a>,
    slots: &'a [Slot],
    /// Only Nodes whose devices have this score, if they are told apart.
    of_devices: Option<u8>,
}

impl Scoring<'_> {
    fn of_rank(self, rank: usize) -> Self {
        Self { of_devices: u8::try_from(rank).ok(), ..self }
    }
}

impl Score for Scoring<'_> {
    fn of(&self, node: usize) -> i16 {
        let same = u32::try_from(node).unwrap_or(Slot::MAX);
        let slot = self.slots.get(node).copied().unwrap_or(same);
        if self.class.takes_devices(slot, self.context, self.of_devices) {
            self.class.score(slot, self.context)
        } else {
            INFEASIBLE
        }
    }

    fn write(&self, nodes: Range<usize>, scores: &mut [i16]) {
        let Self { class, context, slots, of_devices } = *self;
        if slots.is_empty() {
            let slots = nodes.map(|slot| u32::try_from(slot).unwrap_or(Slot::MAX));
            class.write_scores(slots, context, of_devices, scores);
        } else {
            class.write_scores(slots[nodes].iter().copied(), context, of_devices, scores);
        }
    }
}

impl Cell {
    fn new(
        group: usize,
        slots: Vec<Slot>,
        nodes: usize,
        class: &PodClass,
        context: Context<'_>,
    ) -> Self {
        let scoring = Scoring { class, context, slots: &slots, of_devices: None };
        let device_scores = class.device_scores().len();
        let ranks = if class.constraints.tells_nodes_apart() {
            let mut scores = vec![INFEASIBLE; nodes];
            scoring.write(0..nodes, &mut scores);
            Ranks::Each(scores)
        } else if device_scores > 1 {
            let ranking = |rank| Ranking::new(nodes, &scoring.of_rank(rank));
            Ranks::BestByDevices((0..device_scores).map(ranking).collect())
        } else {
            Ranks::Best(Ranking::new(nodes, &scoring))
        };
        Self { group, slot: slots.first().copied().unwrap_or(0), ranks, slots }
    }

    fn nodes(&self) -> usize {
        match &self.ranks {
            Ranks::Best(ranking) => ranking.nodes(),
            Ranks::BestByDevices(rankings) => rankings.first().map_or(0, Ranking::nodes),
            Ranks::Each(scores) => scores.len(),
        }
    }

    /// At most [`BATCH`].
    fn set(&mut self, changes: &[(usize, i16)]) {
        match &mut self.ranks {
            Ranks::Best(ranking) => ranking.changed(changes),
            Ranks::BestByDevices(rankings) => {
                for ranking in rankings {
                    ranking.changed(changes);
                }
            }
            Ranks::Each(scores) => {
                for (leaf, score) in changes {
                    scores[*leaf] = *score;
                }
            }
        }
    }

    /// How many rankings there are: one for each score of devices. None if each Node has a score of its own.
    pub fn rankings(&self) -> usize {
        match &self.ranks {
            Ranks::Best(_) => 1,
            Ranks::BestByDevices(rankings) => rankings.len(),
            Ranks::Each(_) => 0,
        }
    }

    /// The highest score of a ranking; `INFEASIBLE` when no Node is feasible.
    pub fn best(&mut self, rank: usize, draw: Draw, class: &PodClass, context: Context<'_>) -> i16 {
        let scoring = Scoring { class, context, slots: &self.slots, of_devices: None };
        match &mut self.ranks {
            Ranks::Best(ranking) => ranking.best(draw, &scoring),
            Ranks::BestByDevices(rankings) => rankings
                .get_mut(rank)
                .map_or(INFEASIBLE, |ranking| ranking.best(draw, &scoring.of_rank(rank))),
            Ranks::Each(_) => INFEASIBLE,
        }
    }

    /// One of the best, by the draw.
    pub fn any_best(
        &mut self,
        rank: usize,
        draw: Draw,
        class: &PodClass,
        context: Context<'_>,
    ) -> Option<Slot> {
        let scoring = Scoring { class, context, slots: &self.slots, of_devices: None };
        let leaf = match &mut self.ranks {
            Ranks::Best(ranking) => ranking.any_best(draw, &scoring)?,
            Ranks::BestByDevices(rankings) => {
                rankings.get_mut(rank)?.any_best(draw, &scoring.of_rank(rank))?
            }
            Ranks::Each(_) => return None,
        };
        Some(self.slot_of(leaf))
    }

    /// All of them with their scores, of a class that looks at Nodes one by one.
    pub fn each(&self) -> impl Iterator<Item = (Slot, i16)> + '_ {
        let scores = match &self.ranks {
            Ranks::Best(_) | Ranks::BestByDevices(_) => &[],
            Ranks::Each(scores) => scores.as_slice(),
        };
        scores.iter().enumerate().map(|(leaf, score)| (self.slot_of(leaf), *score))
    }

    fn slot_of(&self, leaf: usize) -> Slot {
        let same = u32::try_from(leaf).unwrap_or(Slot::MAX);
        self.slots.get(leaf).copied().unwrap_or(same)
    }

    fn bytes(&self) -> usize {
        let ranks = match &self.ranks {
            Ranks::Best(ranking) => ranking.bytes(),
            Ranks::BestByDevices(rankings) => rankings.iter().map(Ranking::bytes).sum(),
            Ranks::Each(scores) => scores.len() * 2,
        };
        ranks + self.slots.len() * 4
    }
}

impl ScoreCache {
    pub fn new(class: &PodClass, context: Context<'_>) -> Self {
        let Context { index, groups, .. } = context;
        let keys = class.constraints.shared_keys();
        let (at, numbering, nodes) = (index.log.end(), groups.numbering(), index.rows.len());
        let only_group = if keys.is_empty() { groups.only_group() } else { None };
        if let Some(group) = only_group {
            let cell = Cell::new(group, Vec::new(), nodes, class, context);
            return Self { cells: vec![cell], of: Vec::new(), at, numbering };
        }
        let members = members(&keys, context);
        let mut places = vec![NONE; nodes];
        let mut cells = Vec::with_capacity(members.len());
        for (number, (group, slots)) in members.into_iter().enumerate() {
            for (leaf, slot) in slots.iter().enumerate() {
                let place = (u32::try_from(number), u32::try_from(leaf));
                places[*slot as usize] = (place.0.unwrap_or(u32::MAX), place.1.unwrap_or(0));
            }
            let nodes = slots.len();
            cells.push(Cell::new(group, slots, nodes, class, context));
        }
        Self { cells, of: places, at, numbering }
    }

    /// Follows what has changed. False: it has to be made anew.
    pub fn follow(&mut self, class: &mut PodClass, context: Context<'_>) -> bool {
        let index = context.index;
        if self.numbering != context.groups.numbering() {
            return false;
        }
        let Some(changes) = index.log.since(self.at) else { return false };
        let (mut batch, mut length) = ([0; BATCH], 0);
        for (slot, changed) in changes {
            let is_there = changed == Changed::Pods || self.has_its_place(slot, context);
            if !is_there || changed == Changed::Node && !class.constraints.is_empty() {
                return false;
            }
            class.constraints.follow(slot, index);
            class.look_at_volumes(slot, context);
            class.forget_devices(slot);
            batch[length] = slot;
            length += 1;
            if length == BATCH {
                self.score_anew(&batch, class, context);
                length = 0;
            }
        }
        self.score_anew(&batch[..length], class, context);
        self.at = index.log.end();
        true
    }

    /// At most [`BATCH`].
    fn score_anew(&mut self, slots: &[Slot], class: &PodClass, context: Context<'_>) {
        let mut scores = [INFEASIBLE; BATCH];
        class.write_scores(slots.iter().copied(), context, None, &mut scores[..slots.len()]);
        let (mut changes, mut length) = ([(0, INFEASIBLE); BATCH], 0);
        for (slot, score) in slots.iter().zip(scores) {
            let Some((cell, leaf)) = self.place(*slot) else { continue };
            if self.cells.len() > 1 {
                self.cells[cell].set(&[(leaf, score)]);
                continue;
            }
            changes[length] = (leaf, score);
            length += 1;
        }
        if length > 0 {
            self.cells[0].set(&changes[..length]);
        }
    }

    /// Whether it takes so little memory that it is kept though it may never be used again.
    pub fn is_light(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether the Node is in the cell in which it belongs.
    fn has_its_place(&self, slot: Slot, context: Context<'_>) -> bool {
        let group = context.groups.group(slot);
        match self.place(slot) {
            Some((cell, _)) if self.of.is_empty() => {
                group.is_none_or(|group| group == self.cells[cell].group)
            }
            Some((cell, _)) => group == Some(self.cells[cell].group),
            None => group.is_none(),
        }
    }

    fn place(&self, slot: Slot) -> Option<(usize, usize)> {
        if self.of.is_empty() {
            let leaf = slot as usize;
            return (leaf < self.cells[0].nodes()).then_some((0, leaf));
        }
        let (cell, leaf) = self.of.get(slot as usize).copied().unwrap_or(NONE);
        (cell != NONE.0).then_some((cell as usize, leaf as usize))
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.cells.iter().map(Cell::bytes).sum::<usize>() + self.of.len() * 8
    }
}

/// The Nodes of each cell, with their group: those that agree in the group and in the places of all these labels.
fn members(keys: &[KeyId], context: Context<'_>) -> Vec<(usize, Vec<Slot>)> {
    let Context { index, groups, .. } = context;
    let mut numbers: FixedMap<(usize, Vec<Domain>), usize> = FixedMap::default();
    let mut members: Vec<(usize, Vec<Slot>)> = Vec::new();
    for slot in index.rows.slots() {
        let Some(group) = groups.group(slot) else { continue };
        let domains = keys.iter().map(|key| index.topology.of(*key).domain(slot)).collect();
        let number = *numbers.entry((group, domains)).or_insert(members.len());
        if number == members.len() {
            members.push((group, Vec::new()));
        }
        members[number].1.push(slot);
    }
    members
}

impl PodClass {
    /// How good a Node is by itself, apart from its devices; `INFEASIBLE` if it is not in the running.
    pub fn score(&self, slot: Slot, context: Context<'_>) -> i16 {
        let Context { index, groups, .. } = context;
        let Some(group) = groups.group(slot) else { return INFEASIBLE };
        if groups.all()[group].lacks_features
            || self.constraints.affinity.is_kept_apart(slot, index, true)
        {
            return INFEASIBLE;
        }
        let (row, extras) = (index.rows.row(slot), index.rows.extras(slot));
        let score = self.node_fit.score(row, extras);
        if score == INFEASIBLE || !self.is_known_to_take_volumes(slot) {
            return INFEASIBLE;
        }
        // A class with hard constraints is only decided here while no Pod of its priority or above is nominated for a Node.
        if row.nominated == 0 || !self.constraints.are_soft() {
            return score;
        }
        if self.fits_beside_nominated(slot, context) { score } else { INFEASIBLE }
    }

    /// The same for many Nodes: what is the same for most of them is asked once. Those without devices are left out, as far
    /// as it is known; of a class that looks at Nodes one by one, all of them.
    fn write_scores(
        &self,
        slots: impl Iterator<Item = Slot>,
        context: Context<'_>,
        of_devices: Option<u8>,
        scores: &mut [i16],
    ) {
        let Context { index, groups, .. } = context;
        let looks_further = self.constraints.affinity.keeps_apart_on_nodes() || self.has_claims();
        let Some(quick) = self.node_fit.quick().filter(|_| !looks_further) else {
            for (score, slot) in scores.iter_mut().zip(slots) {
                *score = self.score(slot, context);
                if *score != INFEASIBLE && !self.seems_to_take_devices(slot, context, of_devices) {
                    *score = INFEASIBLE;
                }
            }
            return;
        };
        let checks_nominated = self.constraints.are_soft();
        for (score, slot) in scores.iter_mut().zip(slots) {
            let row = index.rows.row(slot);
            *score = match groups.group(slot).map(|group| groups.all()[group].lacks_features) {
                None | Some(true) => INFEASIBLE,
                Some(false) if row.is_ordinary() && (row.nominated == 0 || !checks_nominated) => {
                    quick.score(row)
                }
                Some(false) => self.score(slot, context),
            };
        }
    }

    fn seems_to_take_devices(&self, slot: Slot, context: Context<'_>, score: Option<u8>) -> bool {
        if self.constraints.tells_nodes_apart() {
            self.takes_devices(slot, context, score)
        } else {
            self.may_take_devices(slot, score)
        }
    }
}
