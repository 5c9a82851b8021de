//! Where the in-memory API differs on purpose. Each difference has a name and a reason; the crate `sim`
//! tells its users of the same ones.

use serde_json::Value;

use super::call::Call;

#[derive(Debug)]
pub struct Allowed {
    pub name: &'static str,
    pub why: &'static str,
    /// Makes a reply of either server say nothing about this.
    pub smooth: fn(&Call, &mut Value),
}

pub const ALLOWED: &[Allowed] = &[
    Allowed {
        name: "empty fields",
        why: "the real server shows some fields of its Go structs even when they are null or empty, and \
              drops other empty ones; clients read an empty field and an absent one alike",
        smooth: |_, reply| drop_empty(reply),
    },
    Allowed {
        name: "kinds of items",
        why: "lists copy stored bytes, in which each item says its apiVersion and kind; in the real \
              server's lists of built-in types only the list does",
        smooth: |_, reply| {
            for item in
                reply.pointer_mut("/body/items").and_then(Value::as_array_mut).into_iter().flatten()
            {
                for field in ["apiVersion", "kind"] {
                    item.as_object_mut().map(|item| item.remove(field));
                }
            }
        },
    },
    Allowed {
        name: "age of lists from the cache",
        why: "a list that need not be the latest is taken from the real server's cache, which knows the \
              versions of its own kind only",
        smooth: |call, reply| {
            if call.is_loose_list() {
                reply["body"]["metadata"].as_object_mut().map(|it| it.remove("resourceVersion"));
            }
        },
    },
    Allowed {
        name: "differences within a Pod",
        why: "the real server adds a comparison of two Go structs to its refusal",
        smooth: |_, reply| {
            let causes = reply.pointer_mut("/body/details/causes").and_then(Value::as_array_mut);
            causes.into_iter().flatten().for_each(first_line);
            first_line(&mut reply["body"]);
        },
    },
    Allowed {
        name: "words about what cannot be read",
        why: "the real server repeats what its Go decoders say",
        smooth: |_, reply| {
            if reply["code"] == 400 {
                reply["body"].as_object_mut().map(|body| body.remove("message"));
            }
        },
    },
];

/// A reply without what may differ.
pub fn smoothed(call: &Call, mut reply: Value) -> Value {
    for allowed in ALLOWED {
        (allowed.smooth)(call, &mut reply);
    }
    reply
}

fn first_line(value: &mut Value) {
    if let Some(Value::String(message)) = value.get_mut("message") {
        message.truncate(message.find('\n').unwrap_or(message.len()));
    }
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|_, child| !is_empty(child));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
