//! Reading and editing objects whose shape has not been checked yet, without ever panicking.

use serde_json::{Map, Value};

use crate::quantity;

/// The string at a JSON pointer; empty if there is none, as Kubernetes treats absent strings.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `object` as a map; anything else becomes an empty one.
pub(crate) fn as_map(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match object {
        Value::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

/// The map under `key`, made if it is missing or something else.
pub(crate) fn section<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    as_map(as_map(object).entry(key).or_insert(Value::Null))
}

pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    section(object, "metadata")
}

/// Takes over `key` from `from`, where it may be absent too.
pub(crate) fn take_over(object: &mut Value, from: &Value, key: &str) {
    let map = as_map(object);
    match from.get(key) {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.remove(key),
    };
}

/// Fills in what is missing.
pub(crate) fn default(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    map.entry(key).or_insert_with(|| value.into());
}

/// The real server decodes into structs, where null and absent are the same.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, child| !child.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Quantities may be sent as numbers and in many forms; clients read them as strings of one.
pub(crate) fn unify_quantities(value: &mut Value) {
    const QUANTITIES: [&str; 6] =
        ["requests", "limits", "capacity", "allocatable", "overhead", "sizeLimit"];
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                match child {
                    Value::Object(amounts) if QUANTITIES.contains(&key.as_str()) => {
                        amounts.values_mut().for_each(in_one_form);
                    }
                    _ if key == "sizeLimit" => in_one_form(child),
                    _ => unify_quantities(child),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unify_quantities),
        _ => {}
    }
}

fn in_one_form(value: &mut Value) {
    if let Value::Number(number) = value {
        *value = Value::String(number.to_string());
    }
    if let Value::String(text) = value
        && let Some(canonical) = quantity::canonical(text)
    {
        *text = canonical;
    }
}
