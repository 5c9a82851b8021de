//! What is written of one call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use engine::{Action, Engine, Event, Poll, Report, Work};
use model::{Amount, Instant, ObjectRef, PodUid};
use serde::{Deserialize, Serialize};

/// Everything that changes an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Call {
    Handle { at: Instant, event: Box<Event> },
    Poll { at: Instant, work: Work },
    PollAction,
    PollReport,
    PollReserved,
}

/// What came out of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    Handled,
    Polled(Poll),
    Acted(Option<Action>),
    Reported(Option<Report>),
    Reserved(Option<(ObjectRef, Option<Amount>)>),
    /// The engine failed on it, and has set this Pod aside.
    Failed {
        quarantined: Option<PodUid>,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    pub call: Call,
    pub out: Outcome,
}

/// Entries that follow each other. Keeper and twin share them.
pub(crate) type Chunk = Arc<Vec<Entry>>;

impl Call {
    /// The one place in which an engine is called, by the driver, its twin and a replay. A panic in it costs one Pod,
    /// not the process.
    pub fn carry_out(&self, engine: &mut Engine) -> Outcome {
        let called = catch_unwind(AssertUnwindSafe(|| match self {
            Self::Handle { at, event } => {
                engine.handle(*at, Event::clone(event));
                Outcome::Handled
            }
            Self::Poll { at, work } => Outcome::Polled(engine.poll(*at, *work)),
            Self::PollAction => Outcome::Acted(engine.poll_action()),
            Self::PollReport => Outcome::Reported(engine.poll_report()),
            Self::PollReserved => Outcome::Reserved(engine.poll_reserved()),
        }));
        called.unwrap_or_else(|_| Outcome::Failed { quarantined: engine.recover() })
    }

    pub fn at(&self) -> Option<Instant> {
        match self {
            Self::Handle { at, .. } | Self::Poll { at, .. } => Some(*at),
            Self::PollAction | Self::PollReport | Self::PollReserved => None,
        }
    }
}
