//! Which Nodes have changed. Caches follow this log when they are read, not with every change: most classes of Pods
//! are idle most of the time.

use std::collections::VecDeque;

use super::rows::Slot;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// The Node itself: it is new, gone, or its labels, taints or allocatable resources are others.
    Node,
    /// The Pods on it.
    Pods,
}

/// A point in the log, counted from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(u64);

#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    entries: VecDeque<(Slot, Changed)>,
    dropped: u64,
}

/// A log longer than there are Nodes is slower to follow than all Nodes are to look at; a short one
/// is not worth dropping.
const ENTRIES_MIN: usize = 1024;

impl ChangeLog {
    pub fn push(&mut self, slot: Slot, changed: Changed, nodes: usize) {
        self.entries.push_back((slot, changed));
        while self.entries.len() > nodes.max(ENTRIES_MIN) {
            self.entries.pop_front();
            self.dropped += 1;
        }
    }

    pub fn end(&self) -> Position {
        Position(self.dropped + self.entries.len() as u64)
    }

    /// What has changed since; `None` when that is no longer known.
    pub fn since(
        &self,
        position: Position,
    ) -> Option<impl ExactSizeIterator<Item = (Slot, Changed)> + '_> {
        let start = usize::try_from(position.0.checked_sub(self.dropped)?).ok()?;
        Some(self.entries.range(start.min(self.entries.len())..).copied())
    }
}
