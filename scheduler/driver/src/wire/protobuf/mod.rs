//! Pods and Nodes as protobuf, the two kinds of which there are many.
//!
//! The messages have only the fields that are needed, with the numbers of Kubernetes' `generated.proto`; all
//! others are skipped. Types that have the same fields in both forms are read from both, by two derives; the messages
//! here are those that differ, and are converted. Both forms must give the same: a test of `watch/` compares them.

mod envelope;
mod fields;
mod meta;
mod node;
mod pod;
mod volume;

use prost::{DecodeError, Message};

pub(crate) use envelope::{Bookmark, BookmarkMeta, Event, ListMeta, MAGIC, Status, unwrapped};
use fields::Fields;
pub(crate) use fields::{Field, Head, Wanting};

use super::meta::ObjectMeta;
use super::{WireNode, WirePod};

pub(super) fn pod(bytes: &[u8]) -> Result<WirePod, DecodeError> {
    pod::Pod::decode(bytes).map(WirePod::from)
}

pub(super) fn node(bytes: &[u8]) -> Result<WireNode, DecodeError> {
    node::Node::decode(bytes).map(WireNode::from)
}

/// What a message says that cannot be read as a whole: its fields one by one, as far as they go. Of any object, its
/// name; of a Pod, where it runs.
pub(crate) fn identity(bytes: &[u8]) -> (ObjectMeta, Option<String>) {
    let (mut metadata, mut node_name) = (ObjectMeta::default(), None);
    for field in Fields::of(bytes).map_while(Result::ok) {
        match field.number {
            1 => take_metadata(&mut metadata, field.bytes),
            2 => {
                for field in Fields::of(field.bytes).map_while(Result::ok) {
                    if field.number == NODE_NAME {
                        node_name = text(field.bytes);
                    }
                }
            }
            _ => {}
        }
    }
    (metadata, node_name)
}

/// In the spec of a Pod.
const NODE_NAME: u32 = 10;

fn take_metadata(metadata: &mut ObjectMeta, bytes: &[u8]) {
    for field in Fields::of(bytes).map_while(Result::ok) {
        let part = match field.number {
            1 => &mut metadata.name,
            3 => &mut metadata.namespace,
            5 => &mut metadata.uid,
            6 => &mut metadata.resource_version,
            _ => continue,
        };
        *part = text(field.bytes);
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned).and_then(filled)
}

/// Go writes a text that is empty; in JSON it is left out.
fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
