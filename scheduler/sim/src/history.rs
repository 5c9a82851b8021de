//! The recent past of one resource type, from which every watch of it reads.
//!
//! A watch is only a position in this history. So a slow watcher costs nothing but its place: when
//! the events it still wants are forgotten, it has to list again.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::stored::Stored;

/// At 1,000 writes a second a watcher may stall for 16 s.
const EVENTS_MAX: usize = 16_384;
/// Keeps a history of large objects from filling the memory.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One accepted write.
#[derive(Debug)]
pub(crate) struct Change {
    pub kind: ChangeKind,
    /// The object after the write; for a deletion its last state, under the deletion's version.
    pub object: Arc<Stored>,
    /// Needed by watches with selectors: an object may enter or leave what they select.
    pub before: Option<Arc<Stored>>,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    changes: VecDeque<Arc<Change>>,
    bytes: usize,
    /// The version of the latest change that is no longer remembered.
    forgotten: u64,
}

impl History {
    pub fn push(&mut self, change: Change) {
        self.bytes += change.object.json.len();
        self.changes.push_back(Arc::new(change));
        while self.changes.len() > EVENTS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes -= oldest.object.json.len();
            self.forgotten = oldest.object.revision;
        }
    }

    /// Every change after `revision`, oldest first; `None` if some are forgotten.
    pub fn since(&self, revision: u64) -> Option<impl DoubleEndedIterator<Item = &Arc<Change>>> {
        if revision < self.forgotten {
            return None;
        }
        let start = self.changes.partition_point(|change| change.object.revision <= revision);
        Some(self.changes.iter().skip(start))
    }

    /// Up to `limit` of them.
    pub fn after(&self, revision: u64, limit: usize) -> Option<Vec<Arc<Change>>> {
        self.since(revision).map(|changes| changes.take(limit).cloned().collect())
    }

    /// Drops everything; `revision` is the latest version there is.
    pub fn forget(&mut self, revision: u64) {
        self.changes.clear();
        self.bytes = 0;
        self.forgotten = revision;
    }

    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::Key;

    fn change(revision: u64, bytes: usize) -> Change {
        let object = Arc::new(Stored {
            key: Key::new("", "x"),
            uid: String::new(),
            revision,
            json: vec![b' '; bytes].into(),
            labels: std::collections::BTreeMap::new(),
            fields: Vec::new(),
            terminating: false,
        });
        Change { kind: ChangeKind::Modified, object, before: None }
    }

    #[test]
    fn the_past_is_bounded_by_count_and_says_what_it_forgot() {
        let mut history = History::default();
        let last = EVENTS_MAX as u64 + 10;
        (1..=last).for_each(|revision| history.push(change(revision, 1)));
        assert_eq!(history.forgotten(), 10);
        assert!(history.after(9, 1).is_none(), "change 10 is forgotten");
        let next = history.after(10, 2).unwrap();
        assert_eq!(next.iter().map(|c| c.object.revision).collect::<Vec<_>>(), [11, 12]);
        assert!(history.after(last, 1).unwrap().is_empty());
    }

    #[test]
    fn the_past_is_bounded_by_size() {
        let mut history = History::default();
        (1..=3).for_each(|revision| history.push(change(revision, BYTES_MAX / 2)));
        assert_eq!(history.forgotten(), 1);
    }
}
