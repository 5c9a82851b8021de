//! JSON patch (RFC 6902), as the library of the real server carries it out.
//!
//! It is laxer than the RFC, and clients may lean on that: `replace` adds a missing key, `test` finds a
//! missing key equal to null, and negative indices count from the end. Its errors are repeated word for
//! word, because people search for them.

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

/// Carries out all operations or says why one of them cannot be.
pub(crate) fn apply(document: &mut Value, operations: &[Operation]) -> Result<(), Refusal> {
    for operation in operations {
        operation.apply(document).map_err(|why| Refusal::patch_does_not_apply(&why))?;
    }
    Ok(())
}

impl Operation {
    fn apply(&self, document: &mut Value) -> Result<(), String> {
        match self.op.as_deref() {
            Some("add") => self.add(document),
            Some("remove") => self.remove(document),
            Some("replace") => self.replace(document),
            Some("move") => self.move_value(document),
            Some("test") => self.test(document),
            Some("copy") => self.copy(document),
            other => Err(format!("Unexpected kind: {}", other.unwrap_or("unknown"))),
        }
    }

    fn path(&self) -> Result<&str, String> {
        let kind = self.op.as_deref().unwrap_or_default();
        self.path.as_deref().ok_or_else(|| {
            let why = match kind {
                "add" | "remove" | "copy" => "missing value",
                _ => "operation missing path field: missing value",
            };
            format!("{kind} operation failed to decode path: {why}")
        })
    }

    fn from(&self) -> Result<&str, String> {
        let kind = self.op.as_deref().unwrap_or_default();
        self.from.as_deref().ok_or_else(|| {
            format!("{kind} operation failed to decode from: operation, missing from field: missing value")
        })
    }

    fn add(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        container
            .add(&key, self.value.clone())
            .map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        })?;
        let removed = container.remove(&key);
        removed.map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        if path.is_empty() {
            *document = self.value.clone();
            return Ok(());
        }
        let missing = |what: &str| {
            format!(
                "replace operation does not apply: doc is missing {what}: {path}: missing value"
            )
        };
        let (container, key) = find(document, path).ok_or_else(|| missing("path"))?;
        match container {
            Container::Map(map) => {
                as_map(map).insert(key, self.value.clone());
            }
            Container::List(items) => {
                let index = index(&key, items.len()).map_err(|_| missing("key"))?;
                items[index] = self.value.clone();
            }
        }
        Ok(())
    }

    fn move_value(&self, document: &mut Value) -> Result<(), String> {
        let from = self.from()?;
        let (container, key) = find(document, from).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let moved = container
            .remove(&key)
            .map_err(|why| format!("error in move for path: '{key}': {why}"))?;
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        container.add(&key, moved).map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    fn copy(&self, document: &mut Value) -> Result<(), String> {
        let from = self.from()?;
        let (container, key) = find(document, from).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let copied = container
            .get(&key)
            .map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        container
            .add(&key, copied)
            .map_err(|why| format!("error while adding value during copy: {why}"))
    }

    fn test(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        let found = if path.is_empty() {
            document.clone()
        } else {
            let (container, key) = find(document, path).ok_or_else(|| {
                format!("test operation does not apply: is missing path: {path}: missing value")
            })?;
            container.get(&key).map_err(|why| format!("error in test for path: '{path}': {why}"))?
        };
        if found == self.value {
            Ok(())
        } else {
            Err(format!("testing value {path} failed: test failed"))
        }
    }
}

/// Where a path leads to, without its last step.
enum Container<'a> {
    /// Always an object.
    Map(&'a mut Value),
    List(&'a mut Vec<Value>),
}

fn find<'a>(document: &'a mut Value, path: &str) -> Option<(Container<'a>, String)> {
    let (parents, key) = path.rsplit_once('/')?;
    let mut place = document;
    for step in parents.split('/').skip(1) {
        let step = decoded(step);
        place = match place {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(items) => {
                let index = index(&step, items.len()).ok()?;
                &mut items[index]
            }
            _ => return None,
        };
    }
    let container = match place {
        Value::Array(items) => Container::List(items),
        Value::Object(_) => Container::Map(place),
        _ => return None,
    };
    Some((container, decoded(key)))
}

impl Container<'_> {
    fn get(&self, key: &str) -> Result<Value, String> {
        match self {
            Self::Map(map) => Ok(map.get(key).cloned().unwrap_or_default()),
            Self::List(items) => Ok(items[index(key, items.len())?].clone()),
        }
    }

    fn add(self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Self::Map(map) => {
                as_map(map).insert(key.to_owned(), value);
            }
            Self::List(items) if key == "-" => items.push(value),
            Self::List(items) => {
                // One place more than there are items: behind the last.
                let index = index(key, items.len() + 1).map_err(|why| match why {
                    why if why.starts_with("strconv") => {
                        format!("value was not a proper array index: '{key}': {why}")
                    }
                    why => why,
                })?;
                items.insert(index, value);
            }
        }
        Ok(())
    }

    fn remove(self, key: &str) -> Result<Value, String> {
        match self {
            Self::Map(map) => as_map(map)
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Self::List(items) => {
                let index = index(key, items.len())?;
                Ok(items.remove(index))
            }
        }
    }
}

/// A place in a list of `length` items; a negative one counts from the end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let index: i64 =
        key.parse().map_err(|_| format!("strconv.Atoi: parsing \"{key}\": invalid syntax"))?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let counted = if index < 0 { index + length } else { index };
    let inside = (0..length).contains(&counted);
    usize::try_from(counted)
        .ok()
        .filter(|_| inside)
        .ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}

fn decoded(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(mut document: Value, patch: &Value) -> Result<Value, String> {
        let operations = parse(patch.to_string().as_bytes()).unwrap();
        apply(&mut document, &operations)
            .map_err(|refusal| refusal.status()["message"].as_str().unwrap().to_owned())?;
        Ok(document)
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
        assert_eq!(patched(document, &patch), Ok(expected));
    }

    #[test]
    fn it_is_as_lax_as_the_real_one() {
        let patch = json!([
            { "op": "replace", "path": "/missing", "value": 1 },
            { "op": "test", "path": "/absent", "value": null },
            { "op": "copy", "from": "/absent", "path": "/null" },
        ]);
        assert_eq!(patched(json!({}), &patch), Ok(json!({ "missing": 1, "null": null })));
    }

    #[test]
    fn what_does_not_apply_says_why() {
        for (operation, expected) in [
            (
                json!({ "op": "test", "path": "/a", "value": 2 }),
                "testing value /a failed: test failed",
            ),
            (json!({ "op": "add", "path": "/x/y", "value": 2 }), "doc is missing path: \"/x/y\""),
            (json!({ "op": "add", "path": "x", "value": 2 }), "doc is missing path: \"x\""),
            (
                json!({ "op": "add", "path": "/l/5", "value": 2 }),
                "Unable to access invalid index: 5",
            ),
            (json!({ "op": "add", "path": "/l/x", "value": 2 }), "not a proper array index: 'x'"),
            (json!({ "op": "remove", "path": "/x" }), "Unable to remove nonexistent key: x"),
            (json!({ "op": "remove", "path": "/l/-3" }), "Unable to access invalid index: -3"),
            (json!({ "op": "replace", "path": "/l/2", "value": 1 }), "doc is missing key: /l/2"),
            (json!({ "op": "move", "from": "/x", "path": "/y" }), "error in move for path: 'x'"),
            (json!({ "op": "copy", "path": "/y" }), "missing from field"),
            (json!({ "op": "add", "value": 1 }), "add operation failed to decode path"),
            (json!({ "op": "dance", "path": "/y" }), "Unexpected kind: dance"),
        ] {
            let document = json!({ "a": 1, "l": [1, 2] });
            let why = patched(document, &json!([operation])).unwrap_err();
            assert!(why.contains(expected), "{operation}: {why}");
        }
    }

    #[test]
    fn the_number_of_operations_is_bounded() {
        let operation = json!({ "op": "test", "path": "/a" });
        let patch = Value::Array(vec![operation; OPERATIONS_MAX + 1]);
        assert_eq!(parse(patch.to_string().as_bytes()).unwrap_err().status()["code"], 413);
    }
}
