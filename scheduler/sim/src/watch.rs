//! Watches: a position in a type's history, turned into a stream of events.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream;
use http::StatusCode;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::catalog::ResourceType;
use crate::faults::{self, Attended, Order};
use crate::history::{Change, ChangeKind};
use crate::json::metadata;
use crate::refusal::{Refusal, raw_json_response};
use crate::render::Renderer;
use crate::request::Options;
use crate::selector::Filter;
use crate::store::Store;
use crate::stored::Stored;

/// How long a watch lasts if the client does not say; the real server takes 30 to 60 minutes.
const DURATION_DEFAULT: Duration = Duration::from_mins(30);
/// The real server sends about one bookmark a minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// Events taken under one lock and sent as one chunk.
const BATCH_MAX: usize = 256;

/// What ends a watch from outside.
pub(crate) struct Terms {
    pub stopping: watch::Receiver<bool>,
    pub attended: Attended,
    pub _permit: OwnedSemaphorePermit,
}

/// The answer to a watch: a stream that ends at its time-out, at `stopping`, or with an error event.
pub(crate) fn respond(
    store: &Arc<Store>,
    ty: &Arc<ResourceType>,
    renderer: Renderer,
    filter: Filter,
    options: &Options,
    terms: Terms,
) -> Result<Response, Refusal> {
    let asked = options.watched_revision()?;
    let wants_state = options.initial_events.unwrap_or(asked.is_none());
    let bell = store.bell(ty);
    let (initial, cursor) = if wants_state {
        store.list(ty, filter.namespace.as_deref())
    } else {
        (Vec::new(), asked.unwrap_or_else(|| store.revision()))
    };
    let now = Instant::now();
    let watcher = Watcher {
        store: store.clone(),
        ty: ty.clone(),
        renderer,
        filter,
        initial: initial.into(),
        // The client learns where the initial events end only if it asked for them by name.
        initial_end: wants_state && options.initial_events.is_some() && options.bookmarks,
        cursor,
        bell,
        terms,
        bookmarks: options.bookmarks,
        next_bookmark: now + BOOKMARK_INTERVAL,
        deadline: now + options.timeout.unwrap_or(DURATION_DEFAULT).min(DURATION_DEFAULT),
        over: false,
    };
    let chunks = stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.next_chunk().await?;
        Some((chunk, watcher))
    });
    Ok(raw_json_response(StatusCode::OK, Body::from_stream(chunks)))
}

struct Watcher {
    store: Arc<Store>,
    ty: Arc<ResourceType>,
    renderer: Renderer,
    filter: Filter,
    /// What is still to be sent of the state at the start.
    initial: VecDeque<Arc<Stored>>,
    initial_end: bool,
    /// Everything up to this version has been sent or did not concern this watch.
    cursor: u64,
    bell: watch::Receiver<u64>,
    terms: Terms,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    over: bool,
}

impl Watcher {
    /// The next events; `None` when the watch is over.
    async fn next_chunk(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.over || *self.terms.stopping.borrow() || Instant::now() >= self.deadline {
                return None;
            }
            match self.terms.attended.order() {
                Order::Speak => {}
                Order::BreakOff => {
                    self.over = true;
                    return Some(Err(faults::broken_off()));
                }
                Order::BeSilent => {
                    self.wait_in_silence().await;
                    continue;
                }
            }
            let mut chunk = Vec::new();
            let result = if self.initial.is_empty() && !self.initial_end {
                self.bell.borrow_and_update();
                self.take_changes(&mut chunk)
            } else {
                self.take_initial(&mut chunk)
            };
            match result {
                Err(refusal) => {
                    self.over = true;
                    return Some(Ok(event("ERROR", refusal.status().to_string().as_bytes())));
                }
                Ok(more) if chunk.is_empty() => {
                    if !more {
                        self.wait(&mut chunk).await;
                    }
                }
                Ok(_) => {}
            }
            if !chunk.is_empty() {
                return Some(Ok(chunk.into()));
            }
        }
    }

    fn take_initial(&mut self, chunk: &mut Vec<u8>) -> Result<bool, Refusal> {
        let count = self.initial.len().min(BATCH_MAX);
        for object in self.initial.drain(..count) {
            if self.filter.matches(&object) {
                chunk.extend(event("ADDED", &self.renderer.object(&object)?));
            }
        }
        if self.initial.is_empty() && self.initial_end {
            self.initial_end = false;
            let bookmark = self.renderer.bookmark(self.cursor, true);
            chunk.extend(event("BOOKMARK", bookmark.to_string().as_bytes()));
        }
        Ok(true)
    }

    /// Whether there may be more to take at once.
    fn take_changes(&mut self, chunk: &mut Vec<u8>) -> Result<bool, Refusal> {
        let (changes, complete) = self.store.changes(&self.ty, self.cursor, BATCH_MAX)?;
        for change in &changes {
            self.render(change, chunk)?;
        }
        self.cursor = complete;
        Ok(!changes.is_empty())
    }

    /// An object that starts to match is new to this watch, one that stops matching is gone.
    fn render(&self, change: &Change, chunk: &mut Vec<u8>) -> Result<(), Refusal> {
        let matches = self.filter.matches(&change.object);
        let did_match = change.before.as_ref().is_some_and(|before| self.filter.matches(before));
        let kind = match (change.kind, did_match, matches) {
            (ChangeKind::Added, _, true) | (ChangeKind::Modified, false, true) => "ADDED",
            (ChangeKind::Modified, true, true) => "MODIFIED",
            (ChangeKind::Modified, true, false) => return self.render_departure(change, chunk),
            (ChangeKind::Deleted, true, _) => "DELETED",
            _ => return Ok(()),
        };
        chunk.extend(event(kind, &self.renderer.object(&change.object)?));
        Ok(())
    }

    /// The client gets the last state that it may see, under the version of the change.
    fn render_departure(&self, change: &Change, chunk: &mut Vec<u8>) -> Result<(), Refusal> {
        let revision = change.object.revision;
        if let Some(before) = &change.before {
            let mut value = before.value()?;
            let version = json!(revision.to_string());
            metadata(&mut value).insert("resourceVersion".to_owned(), version);
            let shown = self.renderer.value(value, revision);
            chunk.extend(event("DELETED", shown.to_string().as_bytes()));
        }
        Ok(())
    }

    /// Until something happens; a bookmark is sent if none was for long.
    async fn wait(&mut self, chunk: &mut Vec<u8>) {
        tokio::select! {
            _ = self.bell.changed() => {}
            () = self.terms.attended.changed() => {}
            stopped = self.terms.stopping.changed() => self.over |= stopped.is_err(),
            () = tokio::time::sleep_until(self.deadline) => {}
            () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                let bookmark = self.renderer.bookmark(self.cursor, false);
                chunk.extend(event("BOOKMARK", bookmark.to_string().as_bytes()));
            }
        }
    }
}

impl Watcher {
    /// As a dead connection: nothing comes, whatever happens.
    async fn wait_in_silence(&mut self) {
        tokio::select! {
            () = self.terms.attended.changed() => {}
            stopped = self.terms.stopping.changed() => self.over |= stopped.is_err(),
            () = tokio::time::sleep_until(self.deadline) => {}
        }
    }
}

fn event(kind: &str, object: &[u8]) -> Bytes {
    let mut line = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}
