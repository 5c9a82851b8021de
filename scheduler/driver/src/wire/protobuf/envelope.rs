//! What is around the objects of an answer.

use std::collections::BTreeMap;

use prost::Message;
use serde::Deserialize;

use super::fields::Fields;

/// Before every object that the API server writes by itself.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// The message in its envelope, a `runtime.Unknown`.
pub(crate) fn unwrapped(bytes: &[u8]) -> Option<&[u8]> {
    let envelope = bytes.strip_prefix(MAGIC)?;
    let mut fields = Fields::of(envelope).map_while(Result::ok);
    // One that is empty has no bytes, and may be left out.
    Some(fields.find(|field| field.number == 2).map_or(&[], |field| field.bytes))
}

/// A `meta.v1.WatchEvent`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<'a> {
    pub kind: &'a [u8],
    pub object: &'a [u8],
}

impl<'a> Event<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut event = Self::default();
        for field in Fields::of(bytes) {
            let field = field.ok()?;
            match field.number {
                1 => event.kind = field.bytes,
                2 => event.object = raw_extension(field.bytes)?,
                _ => {}
            }
        }
        Some(event)
    }
}

fn raw_extension(bytes: &[u8]) -> Option<&[u8]> {
    let raw = Fields::of(bytes).map_while(Result::ok).find(|field| field.number == 1)?;
    unwrapped(raw.bytes)
}

/// `metadata` of a list or of a page of it, in either encoding.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    #[prost(string, tag = "2")]
    pub resource_version: String,
    #[serde(rename = "continue")]
    #[prost(string, tag = "3")]
    token: String,
}

impl ListMeta {
    /// Where the list goes on, if it does.
    pub fn token(&self) -> Option<&str> {
        Some(self.token.as_str()).filter(|token| !token.is_empty())
    }
}

/// What an error says.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "3")]
    pub message: String,
    #[prost(int32, tag = "6")]
    pub code: i32,
}

/// What a bookmark says: an object with nothing but metadata.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bookmark {
    #[prost(message, required, tag = "1")]
    pub metadata: BookmarkMeta,
}

/// In either encoding.
#[derive(Clone, PartialEq, Deserialize, Message)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BookmarkMeta {
    #[prost(string, tag = "6")]
    pub resource_version: String,
    #[prost(btree_map = "string, string", tag = "12")]
    pub annotations: BTreeMap<String, String>,
}
