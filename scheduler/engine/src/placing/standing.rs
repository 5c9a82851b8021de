//! How all Nodes stand with one kind of Pod, kept up to date as they change.

use std::ops::Range;

use super::FixedMap;
use super::Ground;
use super::View;
use super::kinds::Kind;
use super::log::{Changed, Position};
use super::ranking::{BATCH, Ranking, Score};
use super::rows::Slot;
use super::statics::{Numbering, Verdicts};
use super::topology::{Domain, KeyId};
use super::tree::OUT;
use crate::rng::Draw;

/// Nodes that differ for the kind only in what each has by itself.
#[derive(Debug)]
pub(super) struct Cell {
    pub group: usize,
    /// The first of them: what they have in common can be asked of it.
    pub slot: Slot,
    ranks: Ranks,
    /// Who has which leaf. Empty: everybody the one of its own number.
    slots: Vec<Slot>,
}

#[derive(Debug)]
enum Ranks {
    /// Of a kind for which only the best of a cell counts.
    Best(Ranking),
    /// Of a kind that looks at Nodes one by one: the score of each.
    Each(Vec<i16>),
}

/// In no cell.
const NONE: (u32, u32) = (u32::MAX, 0);

#[derive(Debug)]
pub(super) struct Standing {
    pub cells: Vec<Cell>,
    /// Cell and leaf of each Node. Empty: all are in the only cell, each in its own place.
    of: Vec<(u32, u32)>,
    at: Position,
    numbering: Numbering,
}

/// What a standing is made of beside the kind.
#[derive(Clone, Copy)]
pub(super) struct Basis<'a> {
    pub view: View<'a>,
    pub ground: &'a Ground,
    pub of: Verdicts<'a>,
}

/// Scores the Nodes of a cell.
struct Scoring<'a> {
    kind: &'a Kind,
    basis: Basis<'a>,
    slots: &'a [Slot],
}

impl Score for Scoring<'_> {
    fn of(&self, node: usize) -> i16 {
        let same = u32::try_from(node).unwrap_or(Slot::MAX);
        let slot = self.slots.get(node).copied().unwrap_or(same);
        self.kind.score(slot, self.basis)
    }

    fn write(&self, nodes: Range<usize>, scores: &mut [i16]) {
        let Self { kind, basis, slots } = *self;
        if slots.is_empty() {
            let slots = nodes.map(|slot| u32::try_from(slot).unwrap_or(Slot::MAX));
            kind.write_scores(slots, basis, scores);
        } else {
            kind.write_scores(slots[nodes].iter().copied(), basis, scores);
        }
    }
}

impl Cell {
    fn new(group: usize, slots: Vec<Slot>, nodes: usize, kind: &Kind, basis: Basis<'_>) -> Self {
        let scoring = Scoring { kind, basis, slots: &slots };
        let ranks = if kind.constraints.tells_nodes_apart() {
            let mut scores = vec![OUT; nodes];
            scoring.write(0..nodes, &mut scores);
            Ranks::Each(scores)
        } else {
            Ranks::Best(Ranking::new(nodes, &scoring))
        };
        Self { group, slot: slots.first().copied().unwrap_or(0), ranks, slots }
    }

    fn nodes(&self) -> usize {
        match &self.ranks {
            Ranks::Best(ranking) => ranking.nodes(),
            Ranks::Each(scores) => scores.len(),
        }
    }

    /// At most [`BATCH`].
    fn set(&mut self, changes: &[(usize, i16)]) {
        match &mut self.ranks {
            Ranks::Best(ranking) => ranking.changed(changes),
            Ranks::Each(scores) => {
                for (leaf, score) in changes {
                    scores[*leaf] = *score;
                }
            }
        }
    }

    /// The highest score; `OUT` when nobody is in the running, or each is asked for by itself.
    pub fn best(&mut self, draw: Draw, kind: &Kind, basis: Basis<'_>) -> i16 {
        let scoring = Scoring { kind, basis, slots: &self.slots };
        match &mut self.ranks {
            Ranks::Best(ranking) => ranking.best(draw, &scoring),
            Ranks::Each(_) => OUT,
        }
    }

    /// One of the best, by the draw.
    pub fn any_best(&mut self, draw: Draw, kind: &Kind, basis: Basis<'_>) -> Option<Slot> {
        let scoring = Scoring { kind, basis, slots: &self.slots };
        let Ranks::Best(ranking) = &mut self.ranks else { return None };
        let leaf = ranking.any_best(draw, &scoring)?;
        Some(self.slot_of(leaf))
    }

    /// All of them with their scores, of a kind that looks at Nodes one by one.
    pub fn each(&self) -> impl Iterator<Item = (Slot, i16)> + '_ {
        let scores = match &self.ranks {
            Ranks::Best(_) => &[],
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
            Ranks::Each(scores) => scores.len() * 2,
        };
        ranks + self.slots.len() * 4
    }
}

impl Standing {
    pub fn new(kind: &Kind, basis: Basis<'_>) -> Self {
        let Basis { ground, of, .. } = basis;
        let keys = kind.constraints.shared_keys();
        let (at, numbering, nodes) = (ground.log.end(), of.numbering(), ground.rows.len());
        let only_group = if keys.is_empty() { of.only_group() } else { None };
        if let Some(group) = only_group {
            let cell = Cell::new(group, Vec::new(), nodes, kind, basis);
            return Self { cells: vec![cell], of: Vec::new(), at, numbering };
        }
        let members = members(&keys, basis);
        let mut places = vec![NONE; nodes];
        let mut cells = Vec::with_capacity(members.len());
        for (number, (group, slots)) in members.into_iter().enumerate() {
            for (leaf, slot) in slots.iter().enumerate() {
                let place = (u32::try_from(number), u32::try_from(leaf));
                places[*slot as usize] = (place.0.unwrap_or(u32::MAX), place.1.unwrap_or(0));
            }
            let nodes = slots.len();
            cells.push(Cell::new(group, slots, nodes, kind, basis));
        }
        Self { cells, of: places, at, numbering }
    }

    /// Follows what has changed. False: it has to be made anew.
    pub fn follow(&mut self, kind: &mut Kind, basis: Basis<'_>) -> bool {
        let ground = basis.ground;
        if self.numbering != basis.of.numbering() {
            return false;
        }
        let Some(changes) = ground.log.since(self.at) else { return false };
        let (mut batch, mut length) = ([0; BATCH], 0);
        for (slot, changed) in changes {
            let is_there = changed == Changed::Pods || self.has_its_place(slot, basis);
            if !is_there || changed == Changed::Node && !kind.constraints.is_empty() {
                return false;
            }
            kind.constraints.follow(slot, ground);
            batch[length] = slot;
            length += 1;
            if length == BATCH {
                self.score_anew(&batch, kind, basis);
                length = 0;
            }
        }
        self.score_anew(&batch[..length], kind, basis);
        self.at = ground.log.end();
        true
    }

    /// At most [`BATCH`].
    fn score_anew(&mut self, slots: &[Slot], kind: &Kind, basis: Basis<'_>) {
        let mut scores = [OUT; BATCH];
        kind.write_scores(slots.iter().copied(), basis, &mut scores[..slots.len()]);
        let (mut changes, mut length) = ([(0, OUT); BATCH], 0);
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

    /// Whether it takes so little memory that it is kept though nobody may ever ask for it again.
    pub fn is_light(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether the Node is in the cell in which it belongs.
    fn has_its_place(&self, slot: Slot, basis: Basis<'_>) -> bool {
        let group = basis.of.group(slot);
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
fn members(keys: &[KeyId], basis: Basis<'_>) -> Vec<(usize, Vec<Slot>)> {
    let Basis { ground, of, .. } = basis;
    let mut numbers: FixedMap<(usize, Vec<Domain>), usize> = FixedMap::default();
    let mut members: Vec<(usize, Vec<Slot>)> = Vec::new();
    for slot in ground.rows.slots() {
        let Some(group) = of.group(slot) else { continue };
        let domains = keys.iter().map(|key| ground.topology.of(*key).domain(slot)).collect();
        let number = *numbers.entry((group, domains)).or_insert(members.len());
        if number == members.len() {
            members.push((group, Vec::new()));
        }
        members[number].1.push(slot);
    }
    members
}

impl Kind {
    /// How good a Node is by itself; `OUT` if it is not in the running.
    pub fn score(&self, slot: Slot, basis: Basis<'_>) -> i16 {
        let Basis { ground, of, .. } = basis;
        let Some(group) = of.group(slot) else { return OUT };
        if of.groups()[group].lacks_features || self.constraints.is_kept_apart_on(slot, ground) {
            return OUT;
        }
        let (row, extras) = (ground.rows.row(slot), ground.rows.extras(slot));
        let score = self.asks.score(row, extras);
        // A kind that constraints keep away is only asked about while nobody who matters to it was promised a Node.
        if score == OUT || row.nominated == 0 || !self.constraints.are_soft() {
            return score;
        }
        if self.fits_beside_promised(slot, basis) { score } else { OUT }
    }

    /// The same for many Nodes: what is the same for most of them is asked once.
    fn write_scores(
        &self,
        slots: impl Iterator<Item = Slot>,
        basis: Basis<'_>,
        scores: &mut [i16],
    ) {
        let Basis { ground, of, .. } = basis;
        let looks_at_pods = self.constraints.keeps_apart_on_nodes();
        let Some(quick) = self.asks.quick().filter(|_| !looks_at_pods) else {
            for (score, slot) in scores.iter_mut().zip(slots) {
                *score = self.score(slot, basis);
            }
            return;
        };
        let asks_promised = self.constraints.are_soft();
        for (score, slot) in scores.iter_mut().zip(slots) {
            let row = ground.rows.row(slot);
            *score = match of.group(slot).map(|group| of.groups()[group].lacks_features) {
                None | Some(true) => OUT,
                Some(false) if row.is_ordinary() && (row.nominated == 0 || !asks_promised) => {
                    quick.score(row)
                }
                Some(false) => self.score(slot, basis),
            };
        }
    }
}
