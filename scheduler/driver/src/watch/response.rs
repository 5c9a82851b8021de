//! Decodes a response that arrives in pieces, in either encoding.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::binary::{Events, List};
use super::cursor::Ask;
use super::frames::{JsonFrame, Lines, StatusOrBookmark, TooLong, Unreadable, read};
use crate::wire::{FromProtobuf, Wire};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";

/// An object, or what is left of one that cannot be read.
pub(super) type Read<K> = Result<K, Box<Unreadable>>;

/// One decoded piece of a response.
#[derive(Debug)]
pub(super) enum Frame<K> {
    Seen(Read<K>),
    Gone(Read<K>),
    Bookmark(StatusOrBookmark),
    Error(StatusOrBookmark),
    /// All objects of a list, or of a page of it, have been decoded.
    ListEnds {
        version: String,
        token: Option<String>,
    },
}

/// The `Accept` header: a server that knows only JSON responds in JSON.
pub(super) fn accepted<K: Wire>() -> &'static str {
    if K::FROM_PROTOBUF.is_some() { PROTOBUF_OR_JSON } else { "application/json" }
}

pub(super) fn is_protobuf(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // With `;stream=watch` behind it in a watch.
    content_type.is_some_and(|it| it.split(';').next().is_some_and(|it| it.trim() == PROTOBUF))
}

/// Decodes a response while it arrives.
#[derive(Debug)]
pub(super) enum ResponseDecoder<K> {
    /// A watch in JSON.
    Lines(Lines),
    /// A watch in protobuf.
    Events(Events, FromProtobuf<K>),
    /// A list in protobuf.
    List(List, FromProtobuf<K>),
}

impl<K: Wire> ResponseDecoder<K> {
    /// None for a list in JSON: it is decoded as a whole.
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

    /// The next piece that is complete. An error: the response is malformed.
    pub fn next(&mut self) -> Option<Result<Frame<K>, String>> {
        match self {
            Self::Lines(lines) => lines.next().map(frame_of_json),
            Self::Events(events, read) => events.next(*read),
            Self::List(list, read) => list.next(*read),
        }
    }
}

fn frame_of_json<K: Wire>(line: &[u8]) -> Result<Frame<K>, String> {
    let frame: JsonFrame<'_> =
        serde_json::from_slice(line).map_err(|error| format!("no event: {error}"))?;
    Ok(match frame.kind {
        "ADDED" | "MODIFIED" => Frame::Seen(read(frame.object)),
        "DELETED" => Frame::Gone(read(frame.object)),
        "BOOKMARK" => Frame::Bookmark(StatusOrBookmark::read(frame.object)),
        _ => Frame::Error(StatusOrBookmark::read(frame.object)),
    })
}
