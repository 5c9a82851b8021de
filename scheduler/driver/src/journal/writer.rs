//! The thread that writes the files: calls to a folder on a server that is gone may never return. That costs the files,
//! and neither the ring nor a decision.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{error, info, warn};

use super::files::Files;
use super::keeper::Parts;

/// What fails may fail at every turn: one journal shows as much as a thousand.
const PAUSE: Duration = Duration::from_mins(1);
/// Journals that wait while another is written: with one a minute, a folder that is slow has caught up by then.
const WAITING_MAX: usize = 1;

#[derive(Debug)]
struct Job {
    parts: Parts,
    why: &'static str,
    at: Timestamp,
}

/// The keeper's end of the line to the folder.
#[derive(Debug)]
pub(super) struct Writer {
    sender: SyncSender<Job>,
    pace: Pace,
    /// Journals that were not written.
    lost: Arc<AtomicU64>,
    /// So that a folder that hangs is reported once.
    hangs: bool,
}

impl Writer {
    pub fn start(folder: PathBuf, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let failed = lost.clone();
        let thread = thread::Builder::new().name("journal-files".to_owned());
        thread.spawn(move || write(&Files::new(folder), &receiver, &failed))?;
        Ok(Self { sender, pace: Pace::default(), lost, hangs: false })
    }

    /// Has a journal written, unless one was a moment ago.
    pub fn save(
        &mut self,
        parts: impl FnOnce() -> io::Result<Parts>,
        why: &'static str,
        now: (Instant, Timestamp),
    ) -> io::Result<()> {
        let (tick, at) = now;
        if !self.pace.allows(tick) {
            return Ok(());
        }
        let is_taken = match self.sender.try_send(Job { parts: parts()?, why, at }) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        };
        let did_hang = std::mem::replace(&mut self.hangs, !is_taken);
        if !is_taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        match (did_hang, is_taken) {
            (false, false) => error!(
                why,
                "the folder of --journal-dir does not answer: this journal is not written, and scheduling goes on; \
                 GET /api/journal holds what led to this, for a while"
            ),
            (true, true) => info!("the folder of --journal-dir answers again"),
            (false, true) | (true, false) => {}
        }
        Ok(())
    }
}

fn write(files: &Files, receiver: &Receiver<Job>, failed: &AtomicU64) {
    while let Ok(Job { parts, why, at }) = receiver.recv() {
        match files.save(&parts, why, at) {
            Ok(path) => error!(why, path = %path.display(), "what led to this is written"),
            Err(error) => {
                failed.fetch_add(1, Ordering::Relaxed);
                warn!(why, %error, "the journal cannot be written to --journal-dir");
            }
        }
    }
}

#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
}

impl Pace {
    fn allows(&mut self, now: Instant) -> bool {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE) {
            return false;
        }
        self.last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_one_after_the_other() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let mut allows = |seconds| pace.allows(start + Duration::from_secs(seconds));
        assert!(allows(0) && !allows(59) && allows(60) && !allows(61));
    }
}
