//! The engine with its journal: every change of the engine is recorded.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Action, Engine, Event, Poll, Report, Work};
use model::{Amount, Instant, ObjectRef};
use tracing::{error, warn};

use super::asking::Asking;
use super::call::{Call, Chunk, Entry, Outcome};
use super::keeper::{Alarm, Dump, Keeper, Parts, Settings};

/// Entries that are handed to the keeper at a time. They are compressed together, so a few would take more room;
/// until then each takes some hundred bytes.
const BATCH: usize = 512;

/// Whatever changes the engine goes through here; looking at it is free.
#[derive(Debug)]
pub(crate) struct Recorded {
    engine: Engine,
    pub(super) keeping: Keeping,
    pub(super) pending: Pending,
    pub(super) asking: Asking,
    woken_by_sweep: u64,
    files_lost: Arc<AtomicU64>,
}

/// Entries that the keeper does not have yet: less than a batch of them.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// In the order of the calls. The twin has them, if there is one.
    pub chunks: Vec<Chunk>,
    /// After those.
    pub latest: Vec<Entry>,
    in_chunks: usize,
}

impl Pending {
    fn len(&self) -> usize {
        self.in_chunks + self.latest.len()
    }

    /// The latest entries become a chunk, if there are any.
    pub fn close(&mut self) -> Option<&Chunk> {
        // A whole batch, as it mostly is, is not copied; a few entries do not hold on to the room for a batch.
        let chunk: Vec<Entry> = if self.latest.len() < BATCH {
            self.latest.drain(..).collect()
        } else {
            std::mem::replace(&mut self.latest, Vec::with_capacity(BATCH))
        };
        if chunk.is_empty() {
            return None;
        }
        self.in_chunks += chunk.len();
        self.chunks.push(Arc::new(chunk));
        self.chunks.last()
    }

    fn take(&mut self) -> Vec<Chunk> {
        self.in_chunks = 0;
        std::mem::take(&mut self.chunks)
    }
}

#[derive(Debug)]
pub(super) enum Keeping {
    /// Until everything has been listed. What was listed is in the first snapshot.
    NotYet(Settings),
    Since(Keeper),
    /// There is no thread for it.
    Never,
}

impl Deref for Recorded {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Recorded {
    pub fn new(engine: Engine, settings: Settings) -> Self {
        Self {
            engine,
            files_lost: settings.files_lost.clone(),
            keeping: Keeping::NotYet(settings),
            pending: Pending::default(),
            asking: Asking::default(),
            woken_by_sweep: 0,
        }
    }

    /// To be called before the engine has seen anything.
    pub fn keep_files_in(&mut self, folder: PathBuf) {
        if let Keeping::NotYet(settings) = &mut self.keeping {
            settings.folder = Some(folder);
        }
    }

    /// How many journals could not be written to the folder.
    pub fn files_lost(&self) -> u64 {
        self.files_lost.load(Ordering::Relaxed)
    }

    pub fn handle(&mut self, at: Instant, event: Event) {
        self.call(Call::Handle { at, event: Box::new(event) });
    }

    pub fn poll(&mut self, at: Instant, work: Work) -> Poll {
        match self.call(Call::Poll { at, work }) {
            Outcome::Polled(poll) => poll,
            // There may be more to do without the quarantined Pod.
            _ => Poll::Yield,
        }
    }

    pub fn poll_action(&mut self) -> Option<Action> {
        match self.call(Call::PollAction) {
            Outcome::Acted(action) => action,
            _ => None,
        }
    }

    pub fn poll_report(&mut self) -> Option<Report> {
        match self.call(Call::PollReport) {
            Outcome::Reported(report) => report,
            _ => None,
        }
    }

    pub fn poll_reserved(&mut self) -> Option<(ObjectRef, Option<Amount>)> {
        match self.call(Call::PollReserved) {
            Outcome::Reserved(reserved) => reserved,
            _ => None,
        }
    }

    /// The journal up to now, when its keeper comes to it. Empty if it has not begun.
    pub fn dump(&mut self, to: Dump) {
        self.hand_over();
        match &self.keeping {
            Keeping::Since(keeper) => keeper.dump(to),
            // The requester may have gone.
            Keeping::NotYet(_) | Keeping::Never => drop(to.send(Parts::new())),
        }
    }

    /// An event on which the engine fails is handed over once more: what it rebuilds must know it.
    fn call(&mut self, call: Call) -> Outcome {
        let out = call.carry_out(&mut self.engine);
        let failed = matches!(out, Outcome::Failed { .. });
        let again = (failed && matches!(call, Call::Handle { .. })).then(|| call.clone());
        self.note(call, &out);
        if let Some(call) = again {
            let out = call.carry_out(&mut self.engine);
            self.note(call, &out);
        }
        out
    }

    fn note(&mut self, call: Call, out: &Outcome) {
        match self.keeping {
            Keeping::Since(_) => self.record(call, out),
            Keeping::NotYet(_) if self.engine.is_synced() => self.begin(),
            Keeping::NotYet(_) | Keeping::Never => {}
        }
        if let Outcome::Failed { quarantined } = out {
            let pod = quarantined.as_ref().map(tracing::field::display);
            error!(pod, "the engine failed; what it was busy with is set aside, the others go on");
            self.raise(Alarm::Quarantine);
        }
        let woken_by_sweep = self.engine.stats().woken_by_sweep;
        if woken_by_sweep > std::mem::replace(&mut self.woken_by_sweep, woken_by_sweep) {
            self.raise(Alarm::LostWakeUp);
        }
    }

    fn record(&mut self, call: Call, out: &Outcome) {
        // Asked at every turn; where nothing comes out, nothing has changed.
        if matches!(out, Outcome::Reserved(None)) {
            return;
        }
        self.pending.latest.push(Entry { call, out: out.clone() });
        if self.pending.len() >= BATCH {
            self.hand_over();
        }
    }

    fn begin(&mut self) {
        let Keeping::NotYet(settings) = &self.keeping else { return };
        self.keeping = match Keeper::start(settings.clone()) {
            Ok(keeper) => {
                keeper.begin(self.engine.snapshot());
                Keeping::Since(keeper)
            }
            Err(error) => {
                warn!(%error, "there is no thread for the journal; scheduling goes on without");
                Keeping::Never
            }
        };
    }

    /// A snapshot can only follow everything that led to it.
    fn hand_over(&mut self) {
        self.show_twin();
        let Keeping::Since(keeper) = &self.keeping else { return };
        keeper.add(self.pending.take());
        if keeper.wants_snapshot() {
            keeper.begin(self.engine.snapshot());
            self.asking.segment_begins();
        }
    }

    pub(super) fn raise(&mut self, alarm: Alarm) {
        self.hand_over();
        if let Keeping::Since(keeper) = &self.keeping {
            keeper.save(alarm);
        }
    }
}
