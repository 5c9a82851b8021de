//! The OpenAPI document, made from the types and the list of routes.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{Body, Estimate, Explanation, Failure, ROUTES, Route, Shadow};

/// Codes that every route answers with, and what they mean.
const COMMON_CODES: [(u16, &str); 6] = [
    (401, "over HTTPS: no bearer token, or one that the API server does not know"),
    (
        403,
        "over HTTPS: the API server does not let the user ask. Plain: a web page of another origin asks",
    ),
    (421, "plain: Host names another machine"),
    (429, "too many questions; Retry-After says when to ask again, in seconds"),
    (500, "a fault of the scheduler"),
    (503, "this replica follows, and leader names the one to ask; or the scheduler is stopping"),
];

/// [`openapi`] as it is committed; a test compares the two.
pub const OPENAPI_JSON: &str = include_str!("../openapi.json");

/// OpenAPI 3.1, whose schemas are JSON Schema.
#[must_use]
pub fn openapi() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    generator.subschema_for::<Explanation>();
    generator.subschema_for::<Estimate>();
    generator.subschema_for::<Shadow>();
    generator.subschema_for::<Failure>();
    let schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "corridor-scheduler",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "Read only. Answers come from the live state and change nothing. Fields are only ever added.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the cluster, over HTTPS. Plain HTTP is served on loopback without one.",
                },
            },
        },
        "security": [{ "bearer": [] }, {}],
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), response("the answer", route.answer));
    for (code, meaning) in route.codes.iter().chain(&COMMON_CODES) {
        responses.insert(code.to_string(), response(meaning, Body::Json("Failure")));
    }
    let mut operation = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "responses": responses,
    });
    let parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.request {
        operation["requestBody"] = json!({ "required": true, "content": content(body) });
    }
    operation
}

fn response(meaning: &str, body: Body) -> Value {
    json!({ "description": meaning, "content": content(body) })
}

fn content(body: Body) -> Value {
    match body {
        Body::Json(schema) => {
            let reference = format!("#/components/schemas/{schema}");
            json!({ "application/json": { "schema": { "$ref": reference } } })
        }
        Body::Pod => json!({
            "application/json": { "schema": { "type": "object", "description": "A Pod of v1." } }
        }),
        Body::Gzip => json!({ "application/gzip": {} }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap_or_default();
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }

    /// To write it anew: `just reference`, then read the difference.
    #[test]
    fn the_committed_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        let document = format!("{:#}\n", openapi());
        if std::env::var_os("CORRIDOR_WRITE_REFERENCE").is_some() {
            std::fs::write(path, &document).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(committed, document, "run `just reference`");
    }
}
