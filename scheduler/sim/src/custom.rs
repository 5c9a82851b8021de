//! What a CustomResourceDefinition says about its objects: defaults, known fields, lists with keys,
//! printer columns. Validation (types, limits, CEL) is not modelled.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::{Map, Value, json};

use crate::jsonpath::JsonPath;
use crate::patch::ListKind;

#[derive(Debug)]
pub(crate) struct CustomType {
    pub schema: Value,
    /// Rules in CEL, which are not modelled.
    pub has_rules: bool,
    pub columns: Vec<PrinterColumn>,
}

#[derive(Debug)]
pub(crate) struct PrinterColumn {
    pub name: String,
    pub kind: String,
    pub priority: i32,
    pub path: JsonPath,
}

impl CustomType {
    pub fn new(version: &CustomResourceDefinitionVersion) -> Self {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let columns = version.additional_printer_columns.iter().flatten();
        let schema = serde_json::to_value(schema).unwrap_or_default();
        Self {
            has_rules: schema.to_string().contains("x-kubernetes-validations"),
            schema,
            columns: columns
                .map(|column| PrinterColumn {
                    name: column.name.clone(),
                    kind: column.type_.clone(),
                    priority: column.priority.unwrap_or_default(),
                    path: JsonPath::parse(&column.json_path),
                })
                .collect(),
        }
    }

    /// Drops fields that the schema does not know and fills in its defaults.
    pub fn shape(&self, object: &mut Value) {
        let kept: Vec<(&str, Value)> = ["apiVersion", "kind", "metadata"]
            .into_iter()
            .filter_map(|key| object.as_object_mut()?.remove(key).map(|value| (key, value)))
            .collect();
        prune(&self.schema, object);
        apply_defaults(&self.schema, object);
        if let Value::Object(map) = object {
            map.extend(kept.into_iter().map(|(key, value)| (key.to_owned(), value)));
        }
    }
}

/// A definition as the server shows it once it is in force.
pub(crate) fn established(definition: &CustomResourceDefinition, now: &str) -> Value {
    let mut object = serde_json::to_value(definition).unwrap_or_default();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": now,
        })
    };
    let stored = definition.spec.versions.iter().filter(|version| version.storage);
    let stored: Vec<&str> = stored.map(|version| version.name.as_str()).collect();
    let status = json!({
        "acceptedNames": definition.spec.names,
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
    if let Value::Object(map) = &mut object {
        map.insert("status".to_owned(), status);
    }
    object
}

/// The schema of a field, if it has one.
pub(crate) fn field_schema<'a>(schema: &'a Value, field: &str) -> Option<&'a Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(field));
    named.or_else(|| schema.get("additionalProperties").filter(|any| any.is_object()))
}

/// How a list with this schema is merged by server-side apply.
pub(crate) fn list_kind(schema: &Value) -> ListKind {
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("map") => {
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            ListKind::Map(keys.map(ToOwned::to_owned).collect())
        }
        Some("set") => ListKind::Set,
        _ => ListKind::Atomic,
    }
}

fn prune(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => prune_map(schema, map),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    prune(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn prune_map(schema: &Value, map: &mut Map<String, Value>) {
    let says = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
    let embedded = says("x-kubernetes-embedded-resource");
    let is_embedded_part =
        |key: &str| embedded && ["apiVersion", "kind", "metadata"].contains(&key);
    let describes_fields =
        schema.get("properties").is_some() || schema.get("additionalProperties").is_some();
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if !says("x-kubernetes-preserve-unknown-fields") && (describes_fields || is_object) {
        let any = schema.get("additionalProperties") == Some(&Value::Bool(true));
        map.retain(|key, _| any || is_embedded_part(key) || field_schema(schema, key).is_some());
    }
    for (key, child) in map.iter_mut() {
        if let Some(schema) = field_schema(schema, key) {
            prune(schema, child);
        }
    }
}

fn apply_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (key, property) in properties.into_iter().flatten() {
                if let Some(default) = property.get("default")
                    && !map.contains_key(key)
                {
                    map.insert(key.clone(), default.clone());
                }
            }
            for (key, child) in map.iter_mut() {
                if let Some(schema) = field_schema(schema, key) {
                    apply_defaults(schema, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    apply_defaults(schema, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(schema: Value) -> CustomType {
        CustomType { schema, has_rules: false, columns: Vec::new() }
    }

    #[test]
    fn defaults_reach_nested_objects_and_items() {
        let ty = custom(json!({ "type": "object", "properties": { "spec": {
            "type": "object",
            "properties": {
                "mode": { "type": "string", "default": "Queue" },
                "qos": { "type": "object", "default": {}, "properties": {
                    "floor": { "type": "integer", "default": 7 } } },
                "lanes": { "type": "array", "items": { "type": "object", "properties": {
                    "up": { "type": "boolean", "default": true } } } },
            },
        }}}));
        let mut object = json!({ "kind": "X", "spec": { "lanes": [{}, { "up": false }] } });
        ty.shape(&mut object);
        let expected = json!({ "kind": "X", "spec": {
            "mode": "Queue", "qos": { "floor": 7 }, "lanes": [{ "up": true }, { "up": false }],
        }});
        assert_eq!(object, expected);
    }

    #[test]
    fn unknown_fields_go_unless_they_may_stay() {
        let ty = custom(json!({ "type": "object", "properties": { "spec": {
            "type": "object",
            "properties": {
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            },
        }}}));
        let mut object = json!({
            "metadata": { "name": "x" }, "typo": 1,
            "spec": { "typo": 1, "free": { "a": 1 }, "labels": { "b": "c" } },
        });
        ty.shape(&mut object);
        let expected = json!({
            "metadata": { "name": "x" }, "spec": { "free": { "a": 1 }, "labels": { "b": "c" } },
        });
        assert_eq!(object, expected);
    }
}
