//! What the twin does on its thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use engine::Engine;
use parking_lot::Mutex;
use tracing::{debug, error};

use super::{Fed, Shared, Stage};
use crate::journal::call::{Chunk, Entry};
use crate::journal::keeper::Parts;
use crate::journal::replay::{ReplayError, replay, what};
use crate::questions::QuestionError;

/// Why a twin ends before its time.
#[derive(Debug, thiserror::Error)]
enum Ending {
    #[error("it came to another outcome than the engine: {0}")]
    Diverged(String),
    #[error("the journal's segment {0}")]
    Segment(#[from] ReplayError),
}

/// Until the loop lets go of it, or it cannot be relied on.
pub(super) fn lead(
    segment: &Receiver<Parts>,
    pending: Vec<Chunk>,
    inbox: &Receiver<Fed>,
    shared: &Mutex<Shared>,
    divergences: &AtomicU64,
) {
    let live = || {
        let Some(mut engine) = built(segment, pending)? else { return Ok(()) };
        follow(&mut engine, inbox, shared)
    };
    match catch_unwind(AssertUnwindSafe(live)) {
        Ok(Ok(())) => debug!("the twin has ended"),
        Ok(Err(why)) => {
            if let Ending::Diverged(_) = why {
                divergences.fetch_add(1, Ordering::Relaxed);
            }
            error!(%why, "the twin that answers questions ends; the loop answers them, and decisions go on");
        }
        Err(_) => error!(
            "the twin that answers questions has failed and ends; the loop answers them, and decisions go on"
        ),
    }
    shared.lock().stage = Stage::Ended;
    // From now on nothing is sent any more.
    for fed in inbox.try_iter() {
        if let Fed::Question(asked, _) = fed {
            asked.refuse(QuestionError::Busy);
        }
    }
}

/// The engine as it was when the twin was asked for. `None`: the keeper has ended, and has said why.
fn built(segment: &Receiver<Parts>, pending: Vec<Chunk>) -> Result<Option<Engine>, Ending> {
    let Ok(parts) = segment.recv() else { return Ok(None) };
    if parts.is_empty() {
        return Ok(None);
    }
    let replayed = replay(parts.concat().as_slice(), u64::MAX)?;
    if let Some(divergence) = replayed.divergence {
        return Err(Ending::Diverged(divergence.to_string()));
    }
    debug!(calls = replayed.calls, "a twin is built from the journal's segment");
    let mut engine = replayed.engine;
    for chunk in pending {
        carry_out(&mut engine, &chunk)?;
    }
    Ok(Some(engine))
}

fn follow(
    engine: &mut Engine,
    inbox: &Receiver<Fed>,
    shared: &Mutex<Shared>,
) -> Result<(), Ending> {
    loop {
        let next = inbox.try_recv().ok().or_else(|| {
            // It has caught up: what is asked now is answered soon.
            shared.lock().stage = Stage::Answering;
            inbox.recv().ok()
        });
        match next {
            Some(Fed::Entries(chunk)) => carry_out(engine, &chunk)?,
            Some(Fed::Question(asked, at)) => {
                asked.answer(engine, at);
                shared.lock().waiting -= 1;
            }
            None => return Ok(()),
        }
    }
}

fn carry_out(engine: &mut Engine, chunk: &[Entry]) -> Result<(), Ending> {
    for Entry { call, out } in chunk {
        let came_out = call.carry_out(engine);
        if came_out != *out {
            let what = what(call);
            let why = format!("of {what}, recorded is {out:?}, and {came_out:?} came out");
            return Err(Ending::Diverged(why));
        }
    }
    Ok(())
}
