//! An answer that comes in piece by piece, whichever way it is written.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::binary::{Events, List};
use super::cursor::Ask;
use super::frames::{Frame, Lines, Notice, TooLong, Unreadable, read};
use crate::wire::{FromProtobuf, Wire};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";

/// An object, or what is left of one that cannot be read.
pub(super) type Read<K> = Result<K, Box<Unreadable>>;

/// What one piece of an answer says.
#[derive(Debug)]
pub(super) enum Told<K> {
    Seen(Read<K>),
    Gone(Read<K>),
    Bookmark(Notice),
    Error(Notice),
    /// Each object of a list, or of a page of it, was told.
    ListEnds {
        version: String,
        token: Option<String>,
    },
}

/// What to ask for: a server that knows only JSON answers in JSON.
pub(super) fn accepted<K: Wire>() -> &'static str {
    if K::FROM_PROTOBUF.is_some() { PROTOBUF_OR_JSON } else { "application/json" }
}

pub(super) fn is_protobuf(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // With `;stream=watch` behind it in a watch.
    content_type.is_some_and(|it| it.split(';').next().is_some_and(|it| it.trim() == PROTOBUF))
}

/// An answer that is read while it comes.
#[derive(Debug)]
pub(super) enum Answer<K> {
    /// A watch in JSON.
    Lines(Lines),
    /// A watch in protobuf.
    Events(Events, FromProtobuf<K>),
    /// A list in protobuf.
    List(List, FromProtobuf<K>),
}

impl<K: Wire> Answer<K> {
    /// None for a list in JSON: it is read when it is there.
    pub fn to(ask: &Ask, headers: &HeaderMap) -> Option<Self> {
        let is_list = matches!(ask, Ask::List | Ask::Page { .. });
        match K::FROM_PROTOBUF.filter(|_| is_protobuf(headers)) {
            Some(read) if is_list => Some(Self::List(List::default(), read)),
            Some(read) => Some(Self::Events(Events::default(), read)),
            None if is_list => None,
            None => Some(Self::Lines(Lines::default())),
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        match self {
            Self::Lines(lines) => lines.feed(bytes),
            Self::Events(events, _) => events.feed(bytes),
            Self::List(list, _) => list.feed(bytes),
        }
    }

    /// The next piece that is there as a whole. An error: this is no answer.
    pub fn next(&mut self) -> Option<Result<Told<K>, String>> {
        match self {
            Self::Lines(lines) => lines.next().map(told_in_json),
            Self::Events(events, read) => events.next(*read),
            Self::List(list, read) => list.next(*read),
        }
    }
}

fn told_in_json<K: Wire>(line: &[u8]) -> Result<Told<K>, String> {
    let frame: Frame<'_> =
        serde_json::from_slice(line).map_err(|error| format!("no event: {error}"))?;
    Ok(match frame.kind {
        "ADDED" | "MODIFIED" => Told::Seen(read(frame.object)),
        "DELETED" => Told::Gone(read(frame.object)),
        "BOOKMARK" => Told::Bookmark(Notice::read(frame.object)),
        _ => Told::Error(Notice::read(frame.object)),
    })
}
