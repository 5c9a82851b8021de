//! The two segments.

use std::io;
use std::sync::Arc;

use engine::Snapshot;

use super::call::Chunk;
use super::lines::{End, EndLine, Head, Lines, SnapshotLine};

/// A full segment has this many bytes of entries, compressed: about five thousand Pods that come, are bound and
/// go, in a chaotic run. With the two of them, and what is on its way, a journal stays below 8 MiB beside its
/// snapshots, of which each has some tens of bytes for a Pod.
pub(crate) const SEGMENT_BYTES_MAX: usize = 3 << 20;

#[derive(Debug)]
pub(crate) struct Ring {
    segment_bytes_max: usize,
    previous: Option<Segment>,
    current: Option<Segment>,
}

#[derive(Debug)]
struct Segment {
    /// The first line and the snapshot.
    start: Arc<[u8]>,
    entries: Vec<Arc<[u8]>>,
    entry_bytes: usize,
    calls: u64,
}

impl Segment {
    fn parts(&self) -> impl Iterator<Item = Arc<[u8]>> {
        self.entries.iter().cloned()
    }
}

impl Ring {
    pub fn new(segment_bytes_max: usize) -> Self {
        Self { segment_bytes_max, previous: None, current: None }
    }

    /// A new segment begins, at a point at which all entries so far were added.
    pub fn begin(&mut self, head: &Head, snapshot: &Snapshot) -> io::Result<()> {
        let mut lines = Lines::small();
        lines.write(head)?;
        lines.write(&SnapshotLine { snapshot })?;
        let start = lines.finish()?;
        let next = Segment { start, entries: Vec::new(), entry_bytes: 0, calls: 0 };
        self.previous = self.current.replace(next);
        Ok(())
    }

    /// The chunks are compressed together.
    pub fn add(&mut self, chunks: &[Chunk]) -> io::Result<()> {
        let calls: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        let Some(segment) = self.current.as_mut().filter(|_| calls > 0) else {
            return Ok(());
        };
        let mut lines = Lines::quick();
        for entry in chunks.iter().flat_map(|chunk| chunk.iter()) {
            lines.write(entry)?;
        }
        let written = lines.finish()?;
        segment.entry_bytes += written.len();
        segment.calls += calls as u64;
        segment.entries.push(written);
        Ok(())
    }

    /// Whether it is time for the next segment.
    pub fn is_full(&self) -> bool {
        self.current.as_ref().is_some_and(|it| it.entry_bytes >= self.segment_bytes_max)
    }

    /// The whole journal, as parts of one file. Empty before the first segment.
    pub fn parts(&self) -> io::Result<Vec<Arc<[u8]>>> {
        Self::parts_of(self.previous.iter().chain(&self.current))
    }

    /// The current segment alone, as parts of one file: the shortest way to the engine as it is.
    pub fn current_parts(&self) -> io::Result<Vec<Arc<[u8]>>> {
        Self::parts_of(self.current.iter())
    }

    fn parts_of<'a>(segments: impl Iterator<Item = &'a Segment>) -> io::Result<Vec<Arc<[u8]>>> {
        let segments: Vec<&Segment> = segments.collect();
        let Some(first) = segments.first() else { return Ok(Vec::new()) };
        let mut parts = vec![first.start.clone()];
        parts.extend(segments.iter().flat_map(|segment| segment.parts()));
        let calls = segments.iter().map(|segment| segment.calls).sum();
        let mut lines = Lines::quick();
        lines.write(&EndLine { end: End { calls } })?;
        parts.push(lines.finish()?);
        Ok(parts)
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        let segments = self.previous.iter().chain(&self.current);
        segments.map(|segment| segment.start.len() + segment.entry_bytes).sum()
    }
}
