//! A journal, carried out again.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use engine::{Engine, Poll, Report};
use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;
use model::Instant;
use serde_json::Value;

use super::call::{Call, Outcome};
use super::lines::{End, FORMAT, Head, LineRead, SnapshotRead};

/// How a gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot be read: {0}; it may be cut off or damaged")]
    Unreadable(#[from] io::Error),
    #[error("is not a journal of corridor-scheduler: its first line is {0}")]
    NotAJournal(String),
    #[error("is of journal format {found}, and this program knows format {FORMAT}")]
    OtherFormat { found: u32 },
    #[error(
        "was written by version {found}, and this is version {}, which may decide otherwise; use {found}",
        env!("CARGO_PKG_VERSION")
    )]
    OtherVersion { found: String },
    #[error("line {line} makes no sense: {why}")]
    Malformed { line: u64, why: String },
    #[error("is cut off after {calls} calls: its last line is missing")]
    CutOff { calls: u64 },
}

/// What a replay has shown.
#[derive(Debug)]
pub struct Replayed {
    pub began: Timestamp,
    /// From the snapshot to the last call.
    pub span: Duration,
    pub calls: u64,
    pub events: u64,
    pub polls: u64,
    /// Bindings that were decided.
    pub binds: u64,
    /// Reports of why a Pod waits.
    pub held: u64,
    /// Steps of evictions.
    pub evictions: u64,
    /// Calls on which the engine failed.
    pub failures: u64,
    /// The first call of which something else came out. Nothing after it was carried out.
    pub divergence: Option<Divergence>,
    /// As it stands at the end.
    pub engine: Engine,
}

/// Where a replay and its journal part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The number of the call, from 1.
    pub call: u64,
    /// Since the snapshot.
    pub after: Duration,
    pub what: String,
    pub recorded: String,
    pub came_out: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.after.as_secs_f64();
        writeln!(f, "call {} ({}), {seconds:.3} s after the start:", self.call, self.what)?;
        writeln!(f, "  recorded: {}", self.recorded)?;
        write!(f, "  came out: {}", self.came_out)
    }
}

impl Replayed {
    /// Why a Pod is where it is when the journal ends.
    pub fn explain(&self, namespace: &str, name: &str) -> Option<api::Explanation> {
        let pod = model::ObjectKey::new(namespace, name);
        self.engine.explain(&pod).map(|it| crate::answers::explanation(&it))
    }

    fn count(&mut self, call: &Call, out: &Outcome) {
        match call {
            Call::Handle { .. } => self.events += 1,
            Call::Poll { .. } => self.polls += 1,
            Call::PollAction | Call::PollReport | Call::PollReserved => {}
        }
        match out {
            Outcome::Polled(Poll::Bind(_)) => self.binds += 1,
            Outcome::Acted(Some(_)) => self.evictions += 1,
            Outcome::Reported(Some(Report::Unschedulable(_))) => self.held += 1,
            Outcome::Failed { .. } => self.failures += 1,
            _ => {}
        }
    }
}

/// Carries out the calls of a journal up to its end, to `calls_max`, or to the first of which something else
/// comes out.
pub fn replay(journal: impl Read, calls_max: u64) -> Result<Replayed, ReplayError> {
    let mut lines = Lines::new(journal)?;
    let head = lines.head()?;
    let snapshot: SnapshotRead = lines.next_as()?;
    let start = snapshot.snapshot.at();
    let engine = Engine::restore(snapshot.snapshot);
    let mut replayed = Replayed {
        began: head.began,
        span: Duration::ZERO,
        calls: 0,
        events: 0,
        polls: 0,
        binds: 0,
        held: 0,
        evictions: 0,
        failures: 0,
        divergence: None,
        engine,
    };
    while replayed.calls < calls_max && replayed.divergence.is_none() {
        let Some(line) = lines.next()? else {
            return Err(ReplayError::CutOff { calls: replayed.calls });
        };
        let read: LineRead = lines.parse(&line)?;
        match (read.call, read.out, read.end) {
            (Some(call), Some(out), None) => again(&mut replayed, &call, out.get(), start, &lines)?,
            (None, None, Some(End { calls })) if calls == replayed.calls => return Ok(replayed),
            _ => return Err(lines.malformed("it is neither a call nor the end")),
        }
    }
    Ok(replayed)
}

/// Carries out one call and compares what comes out, byte by byte.
fn again<R: BufRead>(
    replayed: &mut Replayed,
    call: &Call,
    recorded: &str,
    start: Instant,
    lines: &Lines<R>,
) -> Result<(), ReplayError> {
    let engine = &mut replayed.engine;
    // Of a state that no engine was ever in, nothing is to be expected.
    let out = catch_unwind(AssertUnwindSafe(|| call.carry_out(engine)))
        .map_err(|_| lines.malformed("the engine cannot be rebuilt after it"))?;
    replayed.calls += 1;
    replayed.span = call.at().map_or(replayed.span, |at| at.saturating_since(start));
    replayed.count(call, &out);
    let came_out = serde_json::to_string(&out).map_err(|why| lines.malformed(why))?;
    if came_out != recorded {
        replayed.divergence = Some(Divergence {
            call: replayed.calls,
            after: replayed.span,
            what: what(call),
            recorded: recorded.to_owned(),
            came_out,
        });
    }
    Ok(())
}

/// A call in a few words.
pub(super) fn what(call: &Call) -> String {
    /// The name of the event and of what it is about; not the whole of it.
    const CHARS_MAX: usize = 120;
    match call {
        Call::Handle { event, .. } => format!("{event:?}").chars().take(CHARS_MAX).collect(),
        Call::Poll { .. } => "a decision".to_owned(),
        Call::PollAction => "an action".to_owned(),
        Call::PollReport => "a report".to_owned(),
        Call::PollReserved => "what is reserved".to_owned(),
    }
}

/// The lines of a journal, compressed or not, with their numbers.
struct Lines<R> {
    from: R,
    number: u64,
}

impl<'a> Lines<Box<dyn BufRead + 'a>> {
    fn new(journal: impl Read + 'a) -> io::Result<Self> {
        let mut raw = BufReader::new(journal);
        let is_compressed = raw.fill_buf()?.starts_with(&GZIP);
        let from: Box<dyn BufRead + 'a> = if is_compressed {
            Box::new(BufReader::new(MultiGzDecoder::new(raw)))
        } else {
            Box::new(raw)
        };
        Ok(Self { from, number: 0 })
    }
}

impl<R: BufRead> Lines<R> {
    fn head(&mut self) -> Result<Head, ReplayError> {
        /// As much of a line as tells what the file is.
        const SHOWN_MAX: usize = 60;
        let line = self.next()?.unwrap_or_default();
        let Ok(value) = serde_json::from_str::<Value>(&line) else {
            let shown: String = line.chars().take(SHOWN_MAX).collect();
            return Err(ReplayError::NotAJournal(format!("{shown:?}")));
        };
        // The format first: of another one nothing else need be known.
        let found = value["journal"].as_u64().and_then(|found| u32::try_from(found).ok());
        match found {
            Some(FORMAT) => {}
            Some(found) => return Err(ReplayError::OtherFormat { found }),
            None => return Err(ReplayError::NotAJournal("another object".to_owned())),
        }
        let head: Head = serde_json::from_value(value).map_err(|why| self.malformed(why))?;
        if head.version != env!("CARGO_PKG_VERSION") {
            return Err(ReplayError::OtherVersion { found: head.version });
        }
        Ok(head)
    }

    fn next(&mut self) -> Result<Option<String>, ReplayError> {
        let mut line = String::new();
        self.number += 1;
        Ok((self.from.read_line(&mut line)? > 0).then_some(line))
    }

    fn next_as<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, ReplayError> {
        let line = self.next()?.ok_or(ReplayError::CutOff { calls: 0 })?;
        self.parse(&line)
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, line: &str) -> Result<T, ReplayError> {
        serde_json::from_str(line).map_err(|why| self.malformed(why))
    }

    fn malformed(&self, why: impl fmt::Display) -> ReplayError {
        ReplayError::Malformed { line: self.number, why: why.to_string() }
    }
}
