//! The twin: a second engine on a thread of its own. It carries out the calls that the journal records and answers
//! questions, so that they cost the loop no evaluation of Nodes.
//!
//! A question is exact: it stands behind all calls that were made before it was asked, and is answered when the twin
//! has carried them out. What comes out of each is compared with what came out of it in the loop.

mod life;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::call::Chunk;
use super::keeper::Parts;
use crate::questions::{Asked, QuestionError, WAITING_MAX};

/// Without a question for so long the twin ends, and gives its memory back. A console that is open asks more often.
pub(super) const IDLE_MAX: Duration = Duration::from_mins(5);
/// Messages on their way to the twin: some 60,000 calls in full batches, more than come in the seconds in which it is
/// built in a large cluster. A twin that is further behind ends, because the loop does not wait for it.
pub(super) const FEED_MAX: usize = 128;

#[derive(Debug)]
enum Fed {
    Entries(Chunk),
    /// With the time of the day at which it was asked.
    Question(Asked, Timestamp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is on its way to the state of the engine; questions are not for it.
    Building,
    Answering,
    Ended,
}

/// What both ends know.
#[derive(Debug)]
pub(super) struct Shared {
    stage: Stage,
    /// Questions that were handed to it and are not answered.
    waiting: usize,
}

/// What became of a question that was handed to the twin.
#[derive(Debug)]
pub(super) enum Handed {
    Taken,
    /// As many wait as may.
    Refused,
    /// It does not answer now.
    Back(Asked),
}

/// The loop's end of the line to the twin. Dropping it ends the twin, once it has answered what it was asked.
#[derive(Debug)]
pub(super) struct Twin {
    feed: SyncSender<Fed>,
    pub shared: Arc<Mutex<Shared>>,
    last_asked: Instant,
}

impl Twin {
    /// `segment`: the journal up to the calls in `pending`. All later calls must be shown to it.
    pub fn start(
        segment: Receiver<Parts>,
        pending: Vec<Chunk>,
        divergences: Arc<AtomicU64>,
        now: Instant,
    ) -> io::Result<Self> {
        let (feed, inbox) = sync_channel(FEED_MAX);
        let shared = Arc::new(Mutex::new(Shared { stage: Stage::Building, waiting: 0 }));
        let known = shared.clone();
        let life = move || life::lead(&segment, pending, &inbox, &known, &divergences);
        thread::Builder::new().name("twin".to_owned()).spawn(life)?;
        Ok(Self { feed, shared, last_asked: now })
    }

    pub fn stage(&self) -> Stage {
        self.shared.lock().stage
    }

    pub fn is_idle(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last_asked) >= IDLE_MAX
    }

    pub fn noticed_question(&mut self, now: Instant) {
        self.last_asked = now;
    }

    /// Whether it will carry them out: if not, it has ended or is too far behind, and is of no use any more.
    pub fn show(&self, chunk: &Chunk) -> bool {
        self.feed.try_send(Fed::Entries(chunk.clone())).is_ok()
    }

    /// To be called when it was shown every call.
    pub fn ask(&self, asked: Asked, at: Timestamp) -> Handed {
        // Locked until the question is sent: a twin that ends answers what it was sent before.
        let mut shared = self.shared.lock();
        if shared.stage != Stage::Answering {
            return Handed::Back(asked);
        }
        if shared.waiting >= WAITING_MAX {
            asked.refuse(QuestionError::Busy);
            return Handed::Refused;
        }
        match self.feed.try_send(Fed::Question(asked, at)) {
            Ok(()) => {
                shared.waiting += 1;
                Handed::Taken
            }
            Err(TrySendError::Full(fed) | TrySendError::Disconnected(fed)) => match fed {
                Fed::Question(asked, _) => Handed::Back(asked),
                // Not what was sent.
                Fed::Entries(_) => Handed::Refused,
            },
        }
    }
}
