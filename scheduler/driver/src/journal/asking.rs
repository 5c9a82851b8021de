//! Questions to the engine with its journal: when there is a twin, and who answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use tracing::{info, warn};

use super::keeper::Alarm;
use super::recorded::{Keeping, Recorded};
use super::twin::{Handed, Stage, Twin};
use crate::questions::Asked;

/// What is known of the twin.
#[derive(Debug, Default)]
pub(super) struct Asking {
    pub twin: Option<Twin>,
    /// One has ended before its time: it would again on the same segment.
    pub is_put_off: bool,
    divergences: Arc<AtomicU64>,
    /// How many of them an alarm was raised for.
    divergences_told: u64,
}

impl Asking {
    pub fn segment_begins(&mut self) {
        self.is_put_off = false;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    Loop,
    Twin,
    /// Too many wait.
    Refused,
}

impl Recorded {
    /// How often a twin came to another outcome than the engine.
    pub fn twin_divergences(&self) -> u64 {
        self.asking.divergences.load(Ordering::Relaxed)
    }

    /// Hands the question to the twin, behind all calls so far; answers it here while there is none. The first
    /// question starts one.
    pub fn ask(&mut self, asked: Asked, now: Instant, at: Timestamp) -> AnsweredBy {
        self.tend_twin(now);
        match &mut self.asking.twin {
            Some(twin) => twin.noticed_question(now),
            None => self.start_twin(now),
        }
        // Asked once: a twin that is ready a moment later was not shown the latest calls.
        let is_ready = self.asking.twin.as_ref().is_some_and(|it| it.stage() == Stage::Answering);
        if is_ready {
            self.show_twin();
        }
        let handed = match &self.asking.twin {
            Some(twin) if is_ready => twin.ask(asked, at),
            _ => Handed::Back(asked),
        };
        match handed {
            Handed::Taken => AnsweredBy::Twin,
            Handed::Refused => AnsweredBy::Refused,
            Handed::Back(asked) => {
                asked.answer(self, at);
                AnsweredBy::Loop
            }
        }
    }

    /// To be called now and then: the twin stays close behind, and ends when it is not asked.
    pub fn tend_twin(&mut self, now: Instant) {
        self.note_divergences();
        let Some(twin) = &self.asking.twin else { return };
        match twin.stage() {
            _ if twin.is_idle(now) => {
                info!("no questions are asked: the twin that answers them ends");
                self.asking.twin = None;
            }
            // Until then full batches are enough.
            Stage::Building => {}
            Stage::Answering => self.show_twin(),
            Stage::Ended => self.put_off_twin(),
        }
    }

    /// Shows the twin, if there is one, the calls that it has not seen.
    pub(super) fn show_twin(&mut self) {
        let Some(chunk) = self.pending.close() else { return };
        let Some(twin) = &self.asking.twin else { return };
        if !twin.show(chunk) {
            if twin.stage() != Stage::Ended {
                warn!(
                    "the twin that answers questions is too far behind and ends; the loop answers them"
                );
            }
            self.put_off_twin();
        }
    }

    fn put_off_twin(&mut self) {
        self.asking.twin = None;
        self.asking.is_put_off = true;
    }

    fn start_twin(&mut self, now: Instant) {
        let Keeping::Since(keeper) = &self.keeping else { return };
        if self.asking.is_put_off {
            return;
        }
        // A keeper that is busy is asked by the next question.
        let Some(segment) = keeper.segment() else { return };
        self.pending.close();
        let (pending, divergences) = (self.pending.chunks.clone(), self.asking.divergences.clone());
        match Twin::start(segment, pending, divergences, now) {
            Ok(twin) => {
                info!("questions are asked: a twin of the engine is built to answer them");
                self.asking.twin = Some(twin);
            }
            Err(error) => {
                warn!(%error, "there is no thread for the twin; the loop answers questions");
                self.asking.is_put_off = true;
            }
        }
    }

    fn note_divergences(&mut self) {
        let divergences = self.twin_divergences();
        let told = std::mem::replace(&mut self.asking.divergences_told, divergences);
        if divergences > told {
            self.raise(Alarm::TwinDivergence);
        }
    }
}
