//! The lines of a journal: JSON, one after the other, in members of one gzip stream.
//!
//! ```text
//! {"journal":4,"version":"0.1.0","began":"2026-11-16T20:00:00Z"}
//! {"snapshot":{…}}
//! {"call":{"poll":{"at":81000000000,"work":{…}}},"out":{"polled":{"Bind":{…}}}}
//! …
//! {"end":{"calls":5120}}
//! ```

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call::Call;

/// Raised when the meaning or the names of a line change.
pub(crate) const FORMAT: u32 = 4;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub journal: u32,
    /// Of the program: another one may decide otherwise, and rightly so.
    pub version: String,
    /// By the wall clock, when the snapshot was taken.
    pub began: Timestamp,
}

impl Head {
    pub fn now() -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { journal: FORMAT, version, began: crate::clock::wall_clock() }
    }
}

#[derive(Serialize)]
pub(crate) struct SnapshotLine<'a> {
    pub snapshot: &'a engine::Snapshot,
}

#[derive(Deserialize)]
pub(crate) struct SnapshotRead {
    pub snapshot: engine::Snapshot,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct EndLine {
    pub end: End,
}

/// The last line: without it something is missing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct End {
    pub calls: u64,
}

/// A line after the snapshot: a call, or the end.
#[derive(Deserialize)]
pub(crate) struct LineRead {
    pub call: Option<Call>,
    /// As it was written, to be compared byte by byte.
    pub out: Option<Box<RawValue>>,
    pub end: Option<End>,
}

/// Lines, compressed: members of a gzip stream can be put together as they are.
pub(crate) struct Lines {
    to: BufWriter<GzEncoder<Vec<u8>>>,
}

impl Lines {
    /// For what is written all the time: a tenth of the size in a tenth of the time.
    pub fn quick() -> Self {
        Self::new(Compression::fast())
    }

    /// For what is written seldom and kept long.
    pub fn small() -> Self {
        Self::new(Compression::default())
    }

    fn new(level: Compression) -> Self {
        Self { to: BufWriter::new(GzEncoder::new(Vec::new(), level)) }
    }

    pub fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, line)?;
        self.to.write_all(b"\n")
    }

    pub fn finish(self) -> io::Result<Arc<[u8]>> {
        let encoder = self.to.into_inner().map_err(io::IntoInnerError::into_error)?;
        encoder.finish().map(Arc::from)
    }
}
