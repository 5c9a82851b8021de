//! Answers in protobuf, cut into objects as they come.

use prost::Message;

use super::frames::{StatusOrBookmark, TooLong, Unreadable};
use super::response::{Frame, Read};
use crate::wire::FromProtobuf;
use crate::wire::protobuf::{
    Bookmark, Event, Field, Head, ListMeta, MAGIC, Status, Wanting, identity, unwrapped,
};

/// An object, or what is left of it.
fn read<K>(from_protobuf: FromProtobuf<K>, bytes: &[u8]) -> Read<K> {
    from_protobuf(bytes).map_err(|error| {
        let (metadata, node) = identity(bytes);
        Box::new(Unreadable { metadata, node, why: error.to_string() })
    })
}

/// What an error says that is the whole answer.
pub(super) fn read_error(body: &[u8]) -> StatusOrBookmark {
    error(unwrapped(body).unwrap_or_default())
}

fn error(status: &[u8]) -> StatusOrBookmark {
    let Status { message, code } = Status::decode(status).unwrap_or_default();
    StatusOrBookmark::of_error(u16::try_from(code).unwrap_or_default(), message)
}

/// Bytes that have come and were not taken yet.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    start: usize,
}

impl Pending {
    fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.bytes.drain(..self.start);
        self.start = 0;
        TooLong::check(self.bytes.len() + bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn take(&mut self, length: usize) -> &[u8] {
        let taken = &self.bytes[self.start..self.start + length];
        self.start += length;
        taken
    }
}

/// A watch: each event with its length before it.
#[derive(Debug, Default)]
pub(super) struct Events {
    pending: Pending,
}

impl Events {
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.pending.feed(bytes)
    }

    pub fn next<K>(&mut self, from_protobuf: FromProtobuf<K>) -> Option<Result<Frame<K>, String>> {
        let (head, behind) = self.pending.rest().split_first_chunk()?;
        let length = u32::from_be_bytes(*head) as usize;
        if let Err(too_long) = TooLong::check(length) {
            return Some(Err(too_long.to_string()));
        }
        if behind.len() < length {
            return None;
        }
        let frame = &self.pending.take(head.len() + length)[size_of::<u32>()..];
        let Some(event) = Event::read(frame) else {
            return Some(Err("no event".to_owned()));
        };
        Some(Ok(match event.kind {
            b"ADDED" | b"MODIFIED" => Frame::Seen(read(from_protobuf, event.object)),
            b"DELETED" => Frame::Gone(read(from_protobuf, event.object)),
            b"BOOKMARK" => {
                let bookmark = Bookmark::decode(event.object).unwrap_or_default();
                Frame::Bookmark(StatusOrBookmark::of_bookmark(bookmark.metadata))
            }
            _ => Frame::Error(error(event.object)),
        }))
    }
}

/// A list: metadata, then the objects, in an envelope.
#[derive(Debug, Default)]
pub(super) struct List {
    pending: Pending,
    part: Part,
    meta: ListMeta,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Magic,
    Envelope,
    /// So many bytes of it have not been taken yet.
    List {
        left: usize,
    },
    /// What comes behind the list says nothing.
    Behind,
}

/// Fields of a list.
const METADATA: u32 = 1;
const ITEM: u32 = 2;
/// A field of the envelope: the list itself.
const RAW: u32 = 2;

impl List {
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.part == Part::Behind {
            return Ok(());
        }
        self.pending.feed(bytes)
    }

    pub fn next<K>(&mut self, from_protobuf: FromProtobuf<K>) -> Option<Result<Frame<K>, String>> {
        match self.advance(from_protobuf) {
            Ok(frame) => Some(Ok(frame)),
            Err(Wanting::More(length)) => {
                let too_long = TooLong::check(length.unwrap_or_default()).err()?;
                Some(Err(too_long.to_string()))
            }
            Err(Wanting::Malformed) => Some(Err("no list".to_owned())),
        }
    }

    fn advance<K>(&mut self, from_protobuf: FromProtobuf<K>) -> Result<Frame<K>, Wanting> {
        loop {
            match self.part {
                Part::Magic => self.open()?,
                Part::Envelope => self.enter()?,
                Part::List { left: 0 } => return self.end(),
                Part::List { left } => {
                    let (field, length) = Field::first(self.pending.rest())?;
                    let left = left.checked_sub(length).ok_or(Wanting::Malformed)?;
                    let frame = match field.number {
                        METADATA => {
                            self.meta =
                                ListMeta::decode(field.bytes).map_err(|_| Wanting::Malformed)?;
                            None
                        }
                        ITEM => Some(Frame::Seen(read(from_protobuf, field.bytes))),
                        _ => None,
                    };
                    self.pending.take(length);
                    self.part = Part::List { left };
                    if let Some(frame) = frame {
                        return Ok(frame);
                    }
                }
                Part::Behind => return Err(Wanting::More(None)),
            }
        }
    }

    fn open(&mut self) -> Result<(), Wanting> {
        if self.pending.rest().len() < MAGIC.len() {
            return Err(Wanting::More(Some(MAGIC.len())));
        }
        if self.pending.take(MAGIC.len()) != MAGIC {
            return Err(Wanting::Malformed);
        }
        self.part = Part::Envelope;
        Ok(())
    }

    /// Past one field of the envelope, or into the list.
    fn enter(&mut self) -> Result<(), Wanting> {
        let head = Head::first(self.pending.rest())?;
        if head.is_delimited && head.number == RAW {
            self.pending.take(head.length);
            self.part = Part::List { left: head.value };
        } else {
            let (_, length) = Field::first(self.pending.rest())?;
            self.pending.take(length);
        }
        Ok(())
    }

    /// A list without a version cannot be followed.
    fn end<K>(&mut self) -> Result<Frame<K>, Wanting> {
        self.part = Part::Behind;
        let meta = std::mem::take(&mut self.meta);
        if meta.resource_version.is_empty() {
            return Err(Wanting::Malformed);
        }
        let token = meta.token().map(str::to_owned);
        Ok(Frame::ListEnds { version: meta.resource_version, token })
    }
}
