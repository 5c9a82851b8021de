//! Bytes from the API server, made into objects one by one: one that cannot be read harms no other.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::protobuf::{BookmarkMeta, ListMeta};

/// A piece of an answer that is longer than this is no answer to our question: an object has at most 3 MiB.
const PIECE_BYTES_MAX: usize = 16 << 20;

/// An object that could not be read, as far as it could.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreadable {
    pub metadata: ObjectMeta,
    /// Of a Pod: where it runs.
    pub node: Option<String>,
    pub why: String,
}

/// An object, or what is left of it.
pub(super) fn read<K: DeserializeOwned>(raw: &RawValue) -> Result<K, Box<Unreadable>> {
    serde_json::from_str(raw.get()).map_err(|error| {
        let mut left = Box::new(Unreadable { why: error.to_string(), ..Unreadable::default() });
        if let Ok(object) = serde_json::from_str::<Value>(raw.get()) {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let metadata = &object["metadata"];
            left.metadata = ObjectMeta {
                name: text(&metadata["name"]),
                namespace: text(&metadata["namespace"]),
                uid: text(&metadata["uid"]),
                resource_version: text(&metadata["resourceVersion"]),
                ..ObjectMeta::default()
            };
            left.node = text(&object["spec"]["nodeName"]).filter(|node| !node.is_empty());
        }
        left
    })
}

/// One line of a watch.
#[derive(Debug, Deserialize)]
pub(super) struct JsonFrame<'a> {
    #[serde(rename = "type")]
    pub kind: &'a str,
    #[serde(borrow)]
    pub object: &'a RawValue,
}

/// What a bookmark or an error status contains.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusOrBookmark {
    metadata: BookmarkMeta,
    pub code: u16,
    pub message: String,
}

impl StatusOrBookmark {
    pub fn of_error(code: u16, message: String) -> Self {
        Self { code, message, ..Self::default() }
    }

    pub fn of_bookmark(metadata: BookmarkMeta) -> Self {
        Self { metadata, ..Self::default() }
    }

    pub fn read(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_default()
    }

    pub fn version(&self) -> Option<&str> {
        Some(self.metadata.resource_version.as_str()).filter(|version| !version.is_empty())
    }

    /// Everything there was has been sent.
    pub fn ends_initial_events(&self) -> bool {
        let mark = self.metadata.annotations.get("k8s.io/initial-events-end");
        mark.is_some_and(|mark| mark == "true")
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct JsonPage<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

impl<'a> JsonPage<'a> {
    pub fn read(text: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    pub fn items(&self) -> &[&'a RawValue] {
        self.items.as_deref().unwrap_or_default()
    }

    pub fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    pub fn token(&self) -> Option<&str> {
        self.metadata.token()
    }
}

/// Cuts a stream of bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Where the first line begins that was not taken yet.
    start: usize,
    /// Up to here there is no end of a line.
    searched: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("a piece of the answer is longer than {PIECE_BYTES_MAX} bytes")]
pub(super) struct TooLong;

impl TooLong {
    pub fn check(bytes: usize) -> Result<(), Self> {
        if bytes > PIECE_BYTES_MAX { Err(Self) } else { Ok(()) }
    }
}

impl Lines {
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        TooLong::check(self.bytes.len() + bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line.
    pub fn next(&mut self) -> Option<&[u8]> {
        let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = found.map(|at| self.searched + at) else {
            self.searched = self.bytes.len();
            return None;
        };
        let line = &self.bytes[self.start..end];
        (self.start, self.searched) = (end + 1, end + 1);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WirePod;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn lines_come_whole_however_the_bytes_come() {
        let text = b"one\ntwo two\n\nfour\nhal";
        for size in 1..=text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.feed(chunk).unwrap();
                while let Some(line) = lines.next() {
                    seen.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            assert_eq!(seen, ["one", "two two", "", "four"], "{size}");
        }
        let mut lines = Lines::default();
        assert!(lines.feed(&vec![b'x'; PIECE_BYTES_MAX]).is_ok());
        assert!(lines.feed(b"x").is_err());
    }

    #[test]
    fn of_what_cannot_be_read_its_identity_and_place_are_left() {
        let pod = raw(r#"{"metadata":{"namespace":"a","name":"p","uid":"u","resourceVersion":"7"},
                "spec":{"nodeName":"n1","priority":"high","containers":[]}}"#);
        let left = read::<WirePod>(&pod).unwrap_err();
        assert_eq!(left.metadata.uid.as_deref(), Some("u"));
        assert_eq!(left.node.as_deref(), Some("n1"));
        assert!(left.why.contains("high"), "{}", left.why);
        assert!(read::<WirePod>(&raw("[1]")).unwrap_err().metadata.uid.is_none());
    }

    #[test]
    fn frames_bookmarks_and_pages_are_told_apart() {
        let line = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        let frame: JsonFrame<'_> = serde_json::from_slice(line).unwrap();
        let notice = StatusOrBookmark::read(frame.object);
        assert_eq!((frame.kind, notice.version()), ("BOOKMARK", Some("9")));
        assert!(notice.ends_initial_events());
        let page =
            JsonPage::read(br#"{"metadata":{"resourceVersion":"4","continue":"t"},"items":null}"#);
        let page = page.unwrap();
        assert_eq!((page.version(), page.token(), page.items().len()), ("4", Some("t"), 0));
    }
}
