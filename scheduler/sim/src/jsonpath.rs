//! The part of JSONPath that printer columns use: `.spec.lanes`, `.a[0]`, `.a[*].b`, `.a['b.c']` and
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    /// Items whose field has this value.
    Where(String, String),
}

impl JsonPath {
    /// What cannot be read selects nothing, as an empty column does no harm.
    pub fn parse(path: &str) -> Self {
        let path = path.trim().trim_start_matches('{').trim_end_matches('}');
        Self(steps(path).unwrap_or_else(|| vec![Step::Index(usize::MAX)]))
    }

    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.take(value)).collect();
        }
        found
    }
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(items)) => items.get(*index).into_iter().collect(),
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(map)) => map.values().collect(),
            (Self::Where(field, wanted), Value::Array(items)) => {
                let matches =
                    |item: &&Value| item.get(field).is_some_and(|it| plain(it) == *wanted);
                items.iter().filter(matches).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A value as it stands in a cell.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn steps(mut path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    path = path.trim_start_matches('$');
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix('[') {
            let end = rest.find(']')?;
            steps.push(bracket(&rest[..end])?);
            path = &rest[end + 1..];
        } else {
            let rest = path.strip_prefix('.').unwrap_or(path);
            let end = field_end(rest);
            if end == 0 {
                return None;
            }
            let name = rest[..end].replace('\\', "");
            steps.push(if name == "*" { Step::All } else { Step::Field(name) });
            path = &rest[end..];
        }
    }
    Some(steps)
}

/// A dot may be part of a name when it is escaped.
fn field_end(path: &str) -> usize {
    let mut escaped = false;
    for (at, c) in path.char_indices() {
        if !escaped && (c == '.' || c == '[') {
            return at;
        }
        escaped = c == '\\';
    }
    path.len()
}

fn bracket(inside: &str) -> Option<Step> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (field, value) = condition.split_once("==")?;
        let field = field.trim().strip_prefix("@.")?;
        return Some(Step::Where(field.to_owned(), unquoted(value).to_owned()));
    }
    if let Ok(index) = inside.parse() {
        return Some(Step::Index(index));
    }
    Some(Step::Field(unquoted(inside).to_owned()))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_printer_columns_are_understood() {
        let object = json!({
            "spec": { "lanes": 4, "nm": [1550, 1551], "a.b": "dot" },
            "status": { "conditions": [
                { "type": "Ready", "status": "True" }, { "type": "InUse", "status": "False" },
            ]},
        });
        for (path, expected) in [
            (".spec.lanes", vec![json!(4)]),
            ("{.spec.lanes}", vec![json!(4)]),
            (".spec.nm[0]", vec![json!(1550)]),
            (".spec.nm[*]", vec![json!(1550), json!(1551)]),
            (".spec['a.b']", vec![json!("dot")]),
            (r".spec.a\.b", vec![json!("dot")]),
            (r#".status.conditions[?(@.type=="Ready")].status"#, vec![json!("True")]),
            (".status.conditions[?(@.type=='InUse')].status", vec![json!("False")]),
            (".missing.field", vec![]),
            (".spec..lanes", vec![]),
            (".spec[", vec![]),
        ] {
            let found: Vec<Value> =
                JsonPath::parse(path).find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
