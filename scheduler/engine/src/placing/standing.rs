//! How all Nodes stand with one kind of Pod, kept up to date as they change.

use super::FixedMap;
use super::Ground;
use super::View;
use super::kinds::Kind;
use super::log::{Changed, Position};
use super::rows::Slot;
use super::statics::Static;
use super::topology::Domain;
use super::tree::{OUT, Tournament};

/// Nodes that differ for the kind only in what each has by itself.
#[derive(Debug)]
pub(super) struct Cell {
    pub group: usize,
    /// One of them: what they have in common can be asked of it.
    pub slot: Slot,
    pub tree: Tournament,
    /// Who has which leaf. Empty: everybody the one of its own number.
    slots: Vec<Slot>,
}

impl Cell {
    pub fn slot_of(&self, leaf: usize) -> Slot {
        let same = u32::try_from(leaf).unwrap_or(Slot::MAX);
        self.slots.get(leaf).copied().unwrap_or(same)
    }
}

/// In no cell.
const NONE: (u32, u32) = (u32::MAX, 0);

#[derive(Debug)]
pub(super) struct Standing {
    pub cells: Vec<Cell>,
    /// Cell and leaf of each Node. Empty: all are in the only cell, each in its own place.
    of: Vec<(u32, u32)>,
    at: Position,
}

/// What a standing is made of beside the kind.
#[derive(Clone, Copy)]
pub(super) struct Basis<'a> {
    pub view: View<'a>,
    pub ground: &'a Ground,
    pub of: &'a Static,
}

impl Standing {
    pub fn new(kind: &Kind, basis: Basis<'_>) -> Self {
        let Basis { ground, of, .. } = basis;
        let keys = kind.constraints.shared_keys();
        let at = ground.log.end();
        if keys.is_empty() && of.groups().len() <= 1 {
            let scores = ground.rows.slots().map(|slot| kind.score(slot, basis)).collect();
            let (group, slots) = (0, Vec::new());
            let cell = Cell { group, slot: 0, tree: Tournament::new(scores), slots };
            return Self { cells: vec![cell], of: Vec::new(), at };
        }
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
        let mut places = vec![NONE; ground.rows.len()];
        let mut cells = Vec::with_capacity(members.len());
        for (number, (group, slots)) in members.into_iter().enumerate() {
            for (leaf, slot) in slots.iter().enumerate() {
                let place = (u32::try_from(number), u32::try_from(leaf));
                places[*slot as usize] = (place.0.unwrap_or(u32::MAX), place.1.unwrap_or(0));
            }
            let scores = slots.iter().map(|slot| kind.score(*slot, basis)).collect();
            cells.push(Cell { group, slot: slots[0], tree: Tournament::new(scores), slots });
        }
        Self { cells, of: places, at }
    }

    /// Follows what has changed. False: it has to be made anew.
    pub fn follow(&mut self, kind: &mut Kind, basis: Basis<'_>) -> bool {
        let ground = basis.ground;
        let Some(changes) = ground.log.since(self.at) else { return false };
        for (slot, changed) in changes {
            let is_there = self.has_its_place(slot, basis);
            if changed == Changed::Node && !(is_there && kind.constraints.is_empty()) {
                return false;
            }
            kind.constraints.follow(slot, ground);
            if let Some((cell, leaf)) = self.place(slot) {
                let score = kind.score(slot, basis);
                self.cells[cell].tree.set(leaf, score);
            }
        }
        self.at = ground.log.end();
        true
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
            return (leaf < self.cells[0].tree.capacity()).then_some((0, leaf));
        }
        let (cell, leaf) = self.of.get(slot as usize).copied().unwrap_or(NONE);
        (cell != NONE.0).then_some((cell as usize, leaf as usize))
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.tree.capacity() * 3 + cell.slots.len() * 4);
        cells.sum::<usize>() + self.of.len() * 8
    }
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
}
