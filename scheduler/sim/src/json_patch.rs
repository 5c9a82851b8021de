//! JSON patch (RFC 6902), as the library of the real server carries it out.
//!
//! It is laxer than the RFC, and clients may lean on that: `replace` adds a missing key, `test` finds a
//! missing key equal to null, and negative indices count from the end.

use serde::Deserialize;
use serde_json::Value;

use crate::json::as_map;
use crate::refusal::Refusal;

/// As in the real server.
const OPERATIONS_MAX: usize = 10_000;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Operation {
    #[serde(default)]
    op: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    from: Option<String>,
    /// Null and absent are the same.
    #[serde(default)]
    value: Value,
}

pub(crate) fn parse(body: &[u8]) -> Result<Vec<Operation>, Refusal> {
    // To the real server's decoder, null is a list of nothing.
    let operations: Option<Vec<Operation>> = serde_json::from_slice(body)
        .map_err(|err| Refusal::bad_request(format!("error decoding patch: {err}")))?;
    let operations = operations.unwrap_or_default();
    if operations.len() > OPERATIONS_MAX {
        return Err(Refusal::too_many_operations(OPERATIONS_MAX, operations.len()));
    }
    Ok(operations)
}

/// Carries out all operations. The real server does not say either which of them does not apply.
pub(crate) fn apply(document: &mut Value, operations: &[Operation]) -> Result<(), Refusal> {
    for operation in operations {
        operation.apply(document).ok_or_else(Refusal::patch_does_not_apply)?;
    }
    Ok(())
}

impl Operation {
    /// `None` if it cannot be carried out.
    fn apply(&self, document: &mut Value) -> Option<()> {
        let path = self.path.as_deref()?;
        match self.op.as_deref()? {
            "add" => add(document, path, self.value.clone()),
            "remove" => remove(document, path).map(drop),
            "replace" => replace(document, path, self.value.clone()),
            "move" => {
                let moved = remove(document, self.from.as_deref()?)?;
                add(document, path, moved)
            }
            "copy" => {
                let copied = get(document, self.from.as_deref()?)?;
                add(document, path, copied)
            }
            "test" if path.is_empty() => (*document == self.value).then_some(()),
            "test" => (get(document, path)? == self.value).then_some(()),
            _ => None,
        }
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (container, key) = find(document, path)?;
    match container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            // One place more than there are items: behind the last.
            let index = index(&key, items.len() + 1)?;
            items.insert(index, value);
        }
        map => {
            as_map(map).insert(key, value);
        }
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    let (container, key) = find(document, path)?;
    match container {
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            Some(items.remove(index))
        }
        map => as_map(map).remove(&key),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *document = value;
        return Some(());
    }
    let (container, key) = find(document, path)?;
    match container {
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            items[index] = value;
        }
        map => {
            as_map(map).insert(key, value);
        }
    }
    Some(())
}

/// What is there; null for a missing key.
fn get(document: &mut Value, path: &str) -> Option<Value> {
    let (container, key) = find(document, path)?;
    match container {
        Value::Array(items) => Some(items[index(&key, items.len())?].clone()),
        map => Some(map.get(&key).cloned().unwrap_or_default()),
    }
}

/// The object or list that a path leads into, and its last step.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parents, key) = path.rsplit_once('/')?;
    let mut place = document;
    for step in parents.split('/').skip(1) {
        let step = decoded(step);
        place = match place {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(items) => {
                let index = index(&step, items.len())?;
                &mut items[index]
            }
            _ => return None,
        };
    }
    (place.is_object() || place.is_array()).then(|| (place, decoded(key)))
}

/// A place in a list of `length` items; a negative one counts from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let counted = if index < 0 { index + length } else { index };
    usize::try_from(counted).ok().filter(|_| counted < length)
}

fn decoded(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(mut document: Value, patch: &Value) -> Option<Value> {
        let operations = parse(patch.to_string().as_bytes()).unwrap();
        apply(&mut document, &operations).ok()?;
        Some(document)
    }

    #[test]
    fn every_operation_does_its_work() {
        let document = json!({ "a": { "b/c": 1 }, "l": [1, 2, 3] });
        let patch = json!([
            { "op": "test", "path": "/a/b~1c", "value": 1 },
            { "op": "add", "path": "/a/new", "value": { "x": [] } },
            { "op": "add", "path": "/a/new/x/-", "value": "end" },
            { "op": "add", "path": "/l/1", "value": 9 },
            { "op": "remove", "path": "/l/0" },
            { "op": "replace", "path": "/l/-1", "value": 7 },
            { "op": "copy", "from": "/l", "path": "/copy" },
            { "op": "move", "from": "/a/b~1c", "path": "/moved" },
        ]);
        let expected = json!({
            "a": { "new": { "x": ["end"] } }, "l": [9, 2, 7], "copy": [9, 2, 7], "moved": 1,
        });
        assert_eq!(patched(document, &patch), Some(expected));
    }

    #[test]
    fn it_is_as_lax_as_the_real_one() {
        let patch = json!([
            { "op": "replace", "path": "/missing", "value": 1 },
            { "op": "test", "path": "/absent", "value": null },
            { "op": "copy", "from": "/absent", "path": "/null" },
        ]);
        assert_eq!(patched(json!({}), &patch), Some(json!({ "missing": 1, "null": null })));
    }

    #[test]
    fn what_does_not_apply_is_refused() {
        for operation in [
            json!({ "op": "test", "path": "/a", "value": 2 }),
            json!({ "op": "add", "path": "/x/y", "value": 2 }),
            json!({ "op": "add", "path": "x", "value": 2 }),
            json!({ "op": "add", "path": "/a/x", "value": 2 }),
            json!({ "op": "add", "path": "/l/5", "value": 2 }),
            json!({ "op": "add", "path": "/l/x", "value": 2 }),
            json!({ "op": "remove", "path": "/x" }),
            json!({ "op": "remove", "path": "/l/-3" }),
            json!({ "op": "replace", "path": "/l/2", "value": 1 }),
            json!({ "op": "move", "from": "/x", "path": "/y" }),
            json!({ "op": "copy", "path": "/y" }),
            json!({ "op": "add", "value": 1 }),
            json!({ "op": "dance", "path": "/y" }),
        ] {
            let document = json!({ "a": 1, "l": [1, 2] });
            assert_eq!(patched(document, &json!([operation])), None, "{operation}");
        }
    }

    #[test]
    fn the_number_of_operations_is_bounded() {
        let operation = json!({ "op": "test", "path": "/a" });
        let patch = Value::Array(vec![operation; OPERATIONS_MAX + 1]);
        assert_eq!(parse(patch.to_string().as_bytes()).unwrap_err().status()["code"], 413);
    }
}
