//! Pods and Nodes as protobuf, the two kinds of which there are many.
//!
//! The messages have only the fields that are needed, with the numbers of Kubernetes' `generated.proto`; all
//! others are skipped. Both forms must give the same: a test of `watch/` compares them.

mod affinity;
mod container;
mod envelope;
mod fields;
mod meta;
mod node;
mod pod;
mod volume;

use std::collections::BTreeMap;

use prost::{DecodeError, Message};

pub(crate) use envelope::{Bookmark, Event, ListMeta, MAGIC, Status, unwrapped};
use fields::Fields;
pub(crate) use fields::{Field, Head, Wanting};

use super::{WireNode, WirePod};

pub(super) fn pod(bytes: &[u8]) -> Result<WirePod, DecodeError> {
    pod::Pod::decode(bytes).map(WirePod::from)
}

pub(super) fn node(bytes: &[u8]) -> Result<WireNode, DecodeError> {
    node::Node::decode(bytes).map(WireNode::from)
}

/// What a message says that cannot be read as a whole: its fields one by one, as far as they go.
pub(crate) fn identity(bytes: &[u8]) -> Identity {
    let mut identity = Identity::default();
    for field in Fields::of(bytes).map_while(Result::ok) {
        match field.number {
            1 => identity.take_metadata(field.bytes),
            2 => identity.take_spec(field.bytes),
            _ => {}
        }
    }
    identity
}

/// Of any object, its name; of a Pod, where it runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub node_name: Option<String>,
}

impl Identity {
    fn take_metadata(&mut self, bytes: &[u8]) {
        for field in Fields::of(bytes).map_while(Result::ok) {
            let part = match field.number {
                1 => &mut self.name,
                3 => &mut self.namespace,
                5 => &mut self.uid,
                6 => &mut self.resource_version,
                _ => continue,
            };
            *part = text(field.bytes);
        }
    }

    fn take_spec(&mut self, bytes: &[u8]) {
        for field in Fields::of(bytes).map_while(Result::ok) {
            if field.number == 10 {
                self.node_name = text(field.bytes);
            }
        }
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned).and_then(filled)
}

/// Go writes a text that is empty; in JSON it is left out.
fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// An entry of `map<string, string>`.
#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

fn texts(pairs: Vec<Pair>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

/// An entry of `map<string, Quantity>`.
#[derive(Clone, PartialEq, Message)]
struct Amount {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, required, tag = "2")]
    value: Quantity,
}

#[derive(Clone, PartialEq, Message)]
struct Quantity {
    #[prost(string, tag = "1")]
    text: String,
}

fn amounts(amounts: Vec<Amount>) -> BTreeMap<String, String> {
    amounts.into_iter().map(|amount| (amount.key, amount.value.text)).collect()
}

fn all<T, U: From<T>>(items: Vec<T>) -> Vec<U> {
    items.into_iter().map(U::from).collect()
}
