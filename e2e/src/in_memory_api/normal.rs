//! Replies without what two servers can never share: versions become their order, UIDs the order of
//! their appearance, and times of the clock only a word.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::call::Reply;

/// Times that the calls themselves name are years away from this.
const NEARBY_SECONDS: i64 = 24 * 60 * 60;
const UUID_LENGTH: usize = 36;

/// What one server has shown in one sequence.
#[derive(Debug, Default)]
pub struct Normal {
    uids: Vec<String>,
    /// Versions of objects, and in which order they appeared.
    versions: BTreeMap<u64, usize>,
}

impl Normal {
    /// The reply as the other server should have given it.
    pub fn reply(&mut self, reply: &Reply) -> Value {
        json!({ "code": reply.code, "body": self.value(&reply.body) })
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => json!(self.text(text)),
            // Clients read 1 and 1.0 alike.
            Value::Number(number) => json!(number.as_f64()),
            other => other.clone(),
        }
    }

    fn object(&mut self, map: &Map<String, Value>) -> Value {
        let is_list = map.contains_key("items");
        let is_bookmark = map.get("type") == Some(&json!("BOOKMARK"));
        // In the order of keys, not of the text: that may differ.
        let sorted: BTreeMap<&String, &Value> = map.iter().collect();
        let mut result = Map::new();
        for (key, value) in sorted {
            let shown = match (key.as_str(), value) {
                ("managedFields", _) => continue,
                ("metadata", Value::Object(metadata)) if is_list => self.list_metadata(metadata),
                ("object", bookmark) if is_bookmark => self.bookmark(bookmark),
                ("resourceVersion", Value::String(version)) => json!(self.version(version)),
                ("continue", Value::String(token)) => self.token(token),
                ("message", Value::String(message)) => json!(self.message(message)),
                _ => self.value(value),
            };
            result.insert(key.clone(), shown);
        }
        Value::Object(result)
    }

    /// A list is as new as the server, which also counts the writes of others.
    fn list_metadata(&mut self, metadata: &Map<String, Value>) -> Value {
        let mut metadata = metadata.clone();
        let version = metadata.remove("resourceVersion");
        let mut shown = self.object(&metadata);
        if let Some(version) = version.as_ref().and_then(Value::as_str) {
            shown["resourceVersion"] = json!(self.since(version));
        }
        shown
    }

    fn bookmark(&mut self, bookmark: &Value) -> Value {
        let Some(metadata) = bookmark.get("metadata").and_then(Value::as_object) else {
            return bookmark.clone();
        };
        // The real server also shows the fields that its Go structs never leave out.
        let mut shown = json!({ "kind": bookmark["kind"], "apiVersion": bookmark["apiVersion"] });
        shown["metadata"] = self.list_metadata(metadata);
        shown["metadata"].as_object_mut().map(|map| map.remove("creationTimestamp"));
        shown
    }

    /// The version of an object, and the one before it of those that were seen.
    fn version(&mut self, version: &str) -> String {
        let Ok(number) = version.parse::<u64>() else { return version.to_owned() };
        if self.versions.keys().next().is_some_and(|first| number < *first) {
            return "older than this sequence".to_owned();
        }
        let next = self.versions.len();
        let id = *self.versions.entry(number).or_insert(next);
        match self.versions.range(..number).next_back() {
            Some((_, before)) => format!("version {id}, after {before}"),
            None => format!("version {id}, the first"),
        }
    }

    /// The newest version of an object that a list can show.
    fn since(&self, version: &str) -> String {
        let Ok(number) = version.parse::<u64>() else { return version.to_owned() };
        match self.versions.range(..=number).next_back() {
            Some((_, id)) => format!("since {id}"),
            None => "since the beginning".to_owned(),
        }
    }

    fn token(&self, token: &str) -> Value {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        let Ok(mut token) = serde_json::from_slice::<Value>(&bytes) else { return json!(token) };
        // With or without the slash before it, depending on what answered: cache or etcd.
        if let Some(start) = token.get("start").and_then(Value::as_str) {
            token["start"] = json!(start.trim_start_matches('/'));
        }
        if let Some(version) = token.get("rv").and_then(Value::as_u64) {
            token["rv"] = json!(self.since(&version.to_string()));
        }
        token
    }

    /// Numbers in a message may be versions, where it speaks of them. Not always those of objects: a
    /// list has one too.
    fn message(&mut self, message: &str) -> String {
        // A dry run names the place in etcd without its root.
        let message = &message.replace("Key: /registry/", "Key: /");
        let speaks = ["esourceVersion", "resource version"].iter().any(|it| message.contains(it));
        if !speaks {
            return self.text(message);
        }
        let ends: &[char] = &[' ', ',', '(', ')', '.'];
        let words = message.split_inclusive(ends).map(|word| {
            let number = word.trim_end_matches(ends);
            let is_version = number.parse::<u64>().is_ok();
            if is_version { format!("a version{}", &word[number.len()..]) } else { word.to_owned() }
        });
        let message: String = words.collect();
        self.text(&message)
    }

    /// UIDs anywhere in a text, or a time that is now.
    fn text(&mut self, text: &str) -> String {
        if is_now(text) {
            return "now".to_owned();
        }
        let mut result = String::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if let Some(uid) = rest.get(..UUID_LENGTH).filter(|part| is_uuid(part)) {
                let known = self.uids.iter().position(|it| it == uid);
                let id = known.unwrap_or_else(|| {
                    self.uids.push(uid.to_owned());
                    self.uids.len() - 1
                });
                let _ = write!(result, "uid {id}");
                rest = &rest[UUID_LENGTH..];
            } else {
                result.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        result
    }
}

fn is_uuid(part: &str) -> bool {
    part.char_indices().all(|(index, letter)| match index {
        8 | 13 | 18 | 23 => letter == '-',
        _ => letter.is_ascii_hexdigit(),
    })
}

fn is_now(text: &str) -> bool {
    let Ok(time) = text.parse::<Timestamp>() else { return false };
    let Ok(now) = Timestamp::try_from(SystemTime::now()) else { return false };
    (now.as_second() - time.as_second()).abs() < NEARBY_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    fn shown(normal: &mut Normal, body: Value) -> Value {
        normal.reply(&Reply { code: 200, body })["body"].clone()
    }

    #[test]
    fn versions_become_their_order() {
        let (mut one, mut other) = (Normal::default(), Normal::default());
        let object = |version: &str| json!({ "metadata": { "resourceVersion": version } });
        for (ours, theirs) in [("7", "1007"), ("9", "1100"), ("7", "1007")] {
            assert_eq!(shown(&mut one, object(ours)), shown(&mut other, object(theirs)));
        }
        let list =
            |version: &str| json!({ "items": [], "metadata": { "resourceVersion": version } });
        assert_eq!(shown(&mut one, list("9")), shown(&mut other, list("1200")));
        assert_ne!(shown(&mut one, list("8")), shown(&mut other, list("1200")), "an older list");
        assert_ne!(
            shown(&mut one, object("8")),
            shown(&mut other, object("1200")),
            "another order"
        );
    }

    #[test]
    fn uids_times_and_messages_lose_what_is_made_up() {
        let mut normal = Normal::default();
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
        shown(&mut normal, json!({ "metadata": { "resourceVersion": "63" } }));
        let body = json!({
            "uid": UID, "time": now.to_string(), "then": "2020-01-01T00:00:00Z",
            "message": format!("the resourceVersion 63 of {UID}"), "reason": "at most 63",
            "managedFields": [1],
        });
        let expected = json!({
            "uid": "uid 0", "time": "now", "then": "2020-01-01T00:00:00Z",
            "message": "the resourceVersion a version of uid 0", "reason": "at most 63",
        });
        assert_eq!(shown(&mut normal, body), expected);
    }
}
