//! One call, in words that both servers understand although they count versions differently.
//!
//! What a server made up itself (versions, UIDs, continue tokens) is named by the reply that showed it:
//! `«rv 3»` is the resourceVersion of the fourth reply, each server's own.

use std::fmt;

use serde_json::{Value, json};

pub const JSON: &str = "application/json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

#[derive(Debug, Clone)]
pub struct Call {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub body: Body,
    /// The object it is about, for what is learnt from the reply.
    pub subject: Option<Subject>,
}

#[derive(Debug, Clone)]
pub enum Body {
    Empty,
    Text(String),
    Json(Value),
    /// The object of an earlier reply, with a merge patch of it.
    Changed {
        reply: usize,
        change: Value,
    },
}

/// An object by its place in the table of kinds, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub kind: usize,
    pub namespace: String,
    pub name: String,
}

/// What a server said.
#[derive(Debug, Clone)]
pub struct Reply {
    pub code: u16,
    pub body: Value,
}

impl Call {
    pub fn get(path: String) -> Self {
        Self { method: "GET", path, content_type: JSON, body: Body::Empty, subject: None }
    }

    pub fn new(
        method: &'static str,
        path: String,
        content_type: &'static str,
        body: Value,
    ) -> Self {
        Self { method, path, content_type, body: Body::Json(body), subject: None }
    }

    #[must_use]
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(subject);
        self
    }

    #[must_use]
    pub fn with_query(mut self, term: &str) -> Self {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        self.path = format!("{}{separator}{term}", self.path);
        self
    }

    /// A list that is content with an old state.
    pub fn is_loose_list(&self) -> bool {
        let says = |term: &str| self.path.contains(term);
        let exact = says("resourceVersionMatch=Exact") || says("continue=");
        let limited = says("limit=") && !says("limit=0") && !says("resourceVersion=0");
        let legacy_exact = limited && !says("NotOlderThan");
        says("resourceVersion=") && !exact && !legacy_exact
    }

    pub fn is_watch(&self) -> bool {
        self.path.contains("watch=1")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        match &self.body {
            Body::Empty => Ok(()),
            Body::Text(text) => write!(f, " ({}) {text}", self.content_type),
            Body::Json(body) => write!(f, " ({}) {body}", self.content_type),
            Body::Changed { reply, change } => {
                write!(f, " with reply {reply} merged with {change}")
            }
        }
    }
}

/// `text` with what one server made up in place of the words for it.
pub fn filled(text: &str, replies: &[Reply]) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        let (word, after) = after.split_once('»').unwrap_or((after, ""));
        result.push_str(before);
        result.push_str(&meaning(word, replies));
        rest = after;
    }
    result + rest
}

fn meaning(word: &str, replies: &[Reply]) -> String {
    let (what, index) = word.split_once(' ').unwrap_or((word, ""));
    let reply = index.parse::<usize>().ok().and_then(|index| replies.get(index));
    let pointer = match what {
        "rv" => "/metadata/resourceVersion",
        "uid" => "/metadata/uid",
        _ => "/metadata/continue",
    };
    let found = reply.and_then(|reply| reply.body.pointer(pointer)).and_then(Value::as_str);
    found.unwrap_or("none").to_owned()
}

/// The body that one server gets.
pub fn body_for(call: &Call, replies: &[Reply]) -> Vec<u8> {
    let text = match &call.body {
        Body::Empty => String::new(),
        Body::Text(text) => text.clone(),
        Body::Json(body) => body.to_string(),
        Body::Changed { reply, change } => {
            let mut object = replies.get(*reply).map_or(json!({}), |reply| reply.body.clone());
            merge(&mut object, change);
            object.to_string()
        }
    };
    filled(&text, replies).into_bytes()
}

fn merge(target: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(target) = target else { return };
    for (key, value) in change {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_gets_its_own_words() {
        let reply = |version: &str| Reply {
            code: 200,
            body: json!({ "metadata": { "resourceVersion": version, "uid": "u" } }),
        };
        let replies = [reply("5"), reply("9")];
        assert_eq!(
            filled("a?rv=«rv 1»&uid=«uid 0»&c=«continue 0»", &replies),
            "a?rv=9&uid=u&c=none"
        );
        let change = json!({ "metadata": { "uid": null }, "data": { "v": "«rv 0»" } });
        let body = Body::Changed { reply: 1, change };
        let call = Call { body, ..Call::get(String::new()) };
        let sent: Value = serde_json::from_slice(&body_for(&call, &replies)).unwrap_or_default();
        assert_eq!(sent, json!({ "metadata": { "resourceVersion": "9" }, "data": { "v": "5" } }));
    }
}
