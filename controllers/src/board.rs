//! What the daemons last told, read by every pass.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use daemons::attestd::Device;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

/// The latest sample of every allocation of one daemon, and whether samples flow.
#[derive(Debug)]
pub(crate) struct Board<S> {
    state: RwLock<BoardState<S>>,
}

#[derive(Debug)]
struct BoardState<S> {
    /// Shared: a sample has an array for every wavelength, and each is looked at by many.
    samples: HashMap<String, Arc<S>>,
    /// Counts what makes earlier lists of allocations doubtful: restarts and losses.
    upheavals: u64,
    /// Since when nothing has flowed; `None` while it flows.
    silent_since: Option<Instant>,
    why_silent: String,
}

/// How a daemon looks from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Flowing,
    /// For so long, and why.
    Silent(Duration, String),
}

impl<S> Board<S> {
    pub fn new(now: Instant) -> Self {
        let state = BoardState {
            samples: HashMap::new(),
            upheavals: 0,
            silent_since: Some(now),
            why_silent: "no telemetry yet".to_owned(),
        };
        Self { state: RwLock::new(state) }
    }

    pub fn sample(&self, id: &str) -> Option<Arc<S>> {
        self.state.read().samples.get(id).cloned()
    }

    /// A reading that was asked for. One that the feed brought meanwhile is newer.
    pub fn add(&self, id: &str, sample: S) {
        self.state.write().samples.entry(id.to_owned()).or_insert_with(|| Arc::new(sample));
    }

    pub fn upheavals(&self) -> u64 {
        self.state.read().upheavals
    }

    pub fn flow(&self, now: Instant) -> Flow {
        let state = self.state.read();
        match state.silent_since {
            None => Flow::Flowing,
            Some(since) => Flow::Silent(now.duration_since(since), state.why_silent.clone()),
        }
    }

    /// Takes a page in. `full`: what is not in it does not exist.
    /// Returns whether the daemon was silent before, and the samples that are gone.
    pub fn take(
        &self,
        samples: Vec<(String, S)>,
        gone: &[String],
        full: bool,
    ) -> (bool, Vec<Arc<S>>) {
        let mut state = self.state.write();
        let was_silent = state.silent_since.take().is_some();
        let mut lost: Vec<Arc<S>> = if full {
            state.samples.drain().map(|(_, sample)| sample).collect()
        } else {
            gone.iter().filter_map(|id| state.samples.remove(id)).collect()
        };
        if full || !lost.is_empty() {
            state.upheavals += 1;
        }
        state.samples.extend(samples.into_iter().map(|(id, sample)| (id, Arc::new(sample))));
        if full {
            lost.clear();
        }
        (was_silent, lost)
    }

    pub fn fall_silent(&self, now: Instant, why: String) {
        let mut state = self.state.write();
        state.silent_since.get_or_insert(now);
        state.why_silent = why;
    }
}

/// The UIDs of one kind's objects, as its watch last told. The watch may be behind: who is missing
/// here may well exist, and who is here may be gone.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    uids: RwLock<HashSet<String>>,
}

impl Roster {
    pub fn enter(&self, uid: &str) {
        self.uids.write().insert(uid.to_owned());
    }

    pub fn leave(&self, uid: &str) {
        self.uids.write().remove(uid);
    }

    pub fn contains(&self, uid: &str) -> bool {
        self.uids.read().contains(uid)
    }
}

/// attestd's devices as last told.
#[derive(Debug)]
pub(crate) struct Inventory {
    state: RwLock<Result<Vec<Device>, String>>,
    heard: watch::Sender<bool>,
}

impl Default for Inventory {
    fn default() -> Self {
        let unread = Err("its inventory has not been read yet".to_owned());
        Self { state: RwLock::new(unread), heard: watch::channel(false).0 }
    }
}

impl Inventory {
    pub fn read(&self) -> Result<Vec<Device>, String> {
        self.state.read().clone()
    }

    /// Returns whether anything changed.
    pub fn replace(&self, told: Result<Vec<Device>, String>) -> bool {
        let mut state = self.state.write();
        let changed = *state != told;
        *state = told;
        drop(state);
        self.heard.send_replace(true);
        changed
    }

    /// Waits for the first word of attestd, be it a failure: a process that has just started must
    /// not take its own ignorance for a refusal.
    pub async fn heard(&self) {
        // The sender lives as long as `self`, so this ends only when it is true.
        let _ = self.heard.subscribe().wait_for(|heard| *heard).await;
    }
}

/// Objects of one kind to look at again. Never blocks and coalesces: bounded by the objects.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    pending: Mutex<Pending>,
    notify: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub all: bool,
    pub namespaces: HashSet<String>,
    pub uids: HashSet<String>,
}

impl Wakes {
    /// All at once: whoever listens is not roused for each.
    pub fn wake_each(&self, uids: impl Iterator<Item = String>) {
        self.pending.lock().uids.extend(uids);
        self.notify.notify_one();
    }

    /// All objects of these namespaces.
    pub fn wake_namespaces<'a>(&self, namespaces: impl Iterator<Item = &'a String>) {
        self.pending.lock().namespaces.extend(namespaces.cloned());
        self.notify.notify_one();
    }

    pub fn wake_all(&self) {
        self.pending.lock().all = true;
        self.notify.notify_one();
    }

    /// Waits until there is something, and takes all of it.
    pub async fn next(&self) -> Pending {
        loop {
            let pending = std::mem::take(&mut *self.pending.lock());
            if pending.all || !pending.namespaces.is_empty() || !pending.uids.is_empty() {
                return pending;
            }
            self.notify.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_replaces_everything_and_counts_as_an_upheaval() {
        let now = Instant::now();
        let board = Board::new(now);
        assert!(matches!(board.flow(now), Flow::Silent(..)));
        assert_eq!(board.take(vec![("a".into(), 1), ("b".into(), 2)], &[], true), (true, vec![]));
        assert_eq!(board.upheavals(), 1);
        let lost = board.take(vec![("a".into(), 3)], &["b".into()], false);
        assert_eq!(lost, (false, vec![Arc::new(2)]));
        assert_eq!((board.sample("a"), board.sample("b")), (Some(Arc::new(3)), None));
        assert_eq!(board.upheavals(), 2);
        board.take(vec![("a".into(), 4)], &[], false);
        assert_eq!(board.upheavals(), 2, "samples alone change no list");
    }

    #[test]
    fn silence_counts_from_its_beginning() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let board: Board<u8> = Board::new(start);
        board.take(vec![], &[], true);
        board.fall_silent(start, "x".into());
        board.fall_silent(start + second, "y".into());
        assert_eq!(board.flow(start + 2 * second), Flow::Silent(2 * second, "y".into()));
    }
}
