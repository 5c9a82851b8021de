//! The thread that keeps the ring, so that writing and compressing delay no decision.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use engine::Snapshot;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, error};

use super::call::Chunk;
use super::lines::Head;
use super::ring::{Ring, SEGMENT_BYTES_MAX};
use super::writer::Writer;
use crate::clock::wall_clock;

/// Messages on their way to the keeper. To write a snapshot of 50,000 Pods takes it about a second, in which
/// the loop goes on; beyond this, the loop waits: for a thread that counts and compresses and waits for nothing itself.
const LAG_MAX: usize = 16;
/// Requests for the journal that wait for the loop.
const REQUESTS_MAX: usize = 4;

/// How a journal is kept.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub segment_bytes_max: usize,
    /// Where to write it when something goes wrong.
    pub folder: Option<PathBuf>,
    /// How many could not be written there.
    pub files_lost: Arc<AtomicU64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { segment_bytes_max: SEGMENT_BYTES_MAX, folder: None, files_lost: Arc::default() }
    }
}

/// The parts of one gzip file of JSON lines.
pub(crate) type Parts = Vec<Arc<[u8]>>;

/// Where a requested journal is sent.
pub(crate) type Dump = oneshot::Sender<Parts>;

/// Why the keeper is to write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The engine failed.
    Quarantine,
    /// A Pod waited that no event had woken: one was lost, or misjudged.
    LostWakeUp,
    /// The twin came to another outcome than the engine.
    TwinDivergence,
}

impl Alarm {
    pub fn name(self) -> &'static str {
        match self {
            Self::Quarantine => "quarantine",
            Self::LostWakeUp => "lost-wake-up",
            Self::TwinDivergence => "twin-divergence",
        }
    }
}

#[derive(Debug)]
enum Message {
    Entries(Vec<Chunk>),
    Snapshot(Head, Box<Snapshot>),
    Dump(Dump),
    Segment(SyncSender<Parts>),
    Save(Alarm),
}

/// The loop's end of the line to the keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    sender: SyncSender<Message>,
    is_full: Arc<AtomicBool>,
}

impl Keeper {
    pub fn start(settings: Settings) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(LAG_MAX);
        let is_full = Arc::new(AtomicBool::new(false));
        let seen = is_full.clone();
        thread::Builder::new().name("journal".to_owned()).spawn(move || {
            if let Err(error) = keep(&settings, &receiver, &seen) {
                error!(%error, "the journal cannot be written and ends here; scheduling goes on");
            }
        })?;
        Ok(Self { sender, is_full })
    }

    /// Whether the keeper wants a snapshot, to begin the next segment with. Asked once.
    pub fn wants_snapshot(&self) -> bool {
        self.is_full.swap(false, Ordering::Relaxed)
    }

    // A keeper that has ended has said why.
    pub fn add(&self, batch: Vec<Chunk>) {
        let _ = self.sender.send(Message::Entries(batch));
    }

    pub fn begin(&self, snapshot: Snapshot) {
        let _ = self.sender.send(Message::Snapshot(Head::now(), Box::new(snapshot)));
    }

    pub fn dump(&self, to: Dump) {
        let _ = self.sender.send(Message::Dump(to));
    }

    /// The current segment, up to what was added so far, when the keeper comes to it. `None`: it is too busy.
    pub fn segment(&self) -> Option<Receiver<Parts>> {
        let (to, segment) = sync_channel(1);
        self.sender.try_send(Message::Segment(to)).ok().map(|()| segment)
    }

    pub fn save(&self, alarm: Alarm) {
        let _ = self.sender.send(Message::Save(alarm));
    }
}

fn keep(settings: &Settings, receiver: &Receiver<Message>, is_full: &AtomicBool) -> io::Result<()> {
    let mut ring = Ring::new(settings.segment_bytes_max);
    let lost = &settings.files_lost;
    let files = settings.folder.clone().map(|folder| Writer::start(folder, lost.clone()));
    let mut files = files.transpose()?;
    let mut asked_for = false;
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Entries(batch) => {
                ring.add(&batch)?;
                if ring.is_full() && !asked_for {
                    asked_for = true;
                    is_full.store(true, Ordering::Relaxed);
                }
            }
            Message::Snapshot(head, snapshot) => {
                ring.begin(&head, &snapshot)?;
                asked_for = false;
                debug!(bytes = ring.bytes(), "a segment of the journal begins");
            }
            // The requester may have gone.
            Message::Dump(to) => drop(to.send(ring.parts()?)),
            Message::Segment(to) => drop(to.send(ring.current_parts()?)),
            Message::Save(alarm) => save(&ring, files.as_mut(), alarm)?,
        }
    }
    Ok(())
}

fn save(ring: &Ring, files: Option<&mut Writer>, alarm: Alarm) -> io::Result<()> {
    let why = alarm.name();
    let Some(files) = files else {
        error!(why, "GET /api/journal holds what led to this, for a while; --journal-dir keeps it");
        return Ok(());
    };
    files.save(|| ring.parts(), why, (Instant::now(), wall_clock()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    #[error("the journal begins when everything has been listed; ask again in a moment")]
    NotBegun,
    #[error("too many ask for the journal; ask again in a moment")]
    Busy,
    #[error("the scheduler is stopping")]
    Stopped,
}

/// Asks the loop for the journal; cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    sender: mpsc::Sender<Dump>,
}

impl Journal {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Dump>) {
        let (sender, receiver) = mpsc::channel(REQUESTS_MAX);
        (Self { sender }, receiver)
    }

    /// The journal up to now: the parts of one gzip file of JSON lines.
    pub async fn read(&self) -> Result<Vec<Arc<[u8]>>, JournalError> {
        let (to, read) = oneshot::channel();
        self.sender.try_send(to).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => JournalError::Busy,
            mpsc::error::TrySendError::Closed(_) => JournalError::Stopped,
        })?;
        let parts = read.await.map_err(|_| JournalError::Stopped)?;
        if parts.is_empty() { Err(JournalError::NotBegun) } else { Ok(parts) }
    }
}
