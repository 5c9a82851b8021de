//! One state of one object, as it is kept: the JSON text that clients get, and what selectors ask for.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::catalog::ResourceType;
use crate::json::{metadata, text};
use crate::refusal::Refusal;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Empty for cluster-wide types.
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.namespace.bytes().chain(*b"/").chain(self.name.bytes())
    }
}

/// The order of lists is that of etcd's keys, `namespace/name`: `a-b/x` comes before `a/x`.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug)]
pub(crate) struct Stored {
    pub key: Key,
    pub uid: String,
    pub revision: u64,
    pub json: Bytes,
    pub labels: BTreeMap<String, String>,
    /// In the order of [`ResourceType::fields`].
    pub fields: Vec<String>,
    /// Has a deletionTimestamp.
    pub terminating: bool,
}

impl Stored {
    pub fn value(&self) -> Result<Value, Refusal> {
        serde_json::from_slice(&self.json).map_err(|err| Refusal::internal(err.to_string()))
    }
}

/// The stored form of `value` at `revision`.
pub(crate) fn stored(ty: &ResourceType, key: &Key, mut value: Value, revision: u64) -> Stored {
    metadata(&mut value).insert("resourceVersion".to_owned(), json!(revision.to_string()));
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|value| (key.clone(), value.to_owned())));
    Stored {
        key: key.clone(),
        uid: text(&value, "/metadata/uid").to_owned(),
        revision,
        labels: labels.collect(),
        fields: ty.field_pointers.iter().map(|field| field_text(&value, field)).collect(),
        terminating: !text(&value, "/metadata/deletionTimestamp").is_empty(),
        json: Bytes::from(value.to_string()),
    }
}

/// The same for a dry run: what is never stored has no version.
pub(crate) fn unstored(ty: &ResourceType, key: &Key, value: Value) -> Stored {
    let mut object = stored(ty, key, value, 0);
    if let Ok(mut value) = object.value() {
        metadata(&mut value).remove("resourceVersion");
        object.json = Bytes::from(value.to_string());
    }
    object
}

fn field_text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        // The only selectable truth value that is usually left out.
        None if pointer == "/spec/unschedulable" => "false".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_the_order_of_etcd() {
        let mut keys = [("a", "x"), ("a-b", "x"), ("", "x"), ("a", "w.x"), ("a", "w-x")]
            .map(|(namespace, name)| Key::new(namespace, name));
        keys.sort();
        let shown = keys.map(|key| format!("{}/{}", key.namespace, key.name));
        assert_eq!(shown, ["/x", "a-b/x", "a/w-x", "a/w.x", "a/x"]);
    }
}
