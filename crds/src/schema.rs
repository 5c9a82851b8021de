//! Schema pieces that several kinds share, and the finishing touches that the
//! derive cannot express.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};

/// Upper bound of generations and counters: the largest integer that every
/// JSON reader keeps exactly (2^53 − 1).
pub const COUNT_MAX: i64 = 9_007_199_254_740_991;

/// A Kubernetes label value; empty is allowed.
pub const LABEL_VALUE_PATTERN: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";

/// A Kubernetes label key. The length of its prefix is checked apart. `[.]`
/// instead of `\.`: it stands inside a CEL string.
const LABEL_KEY_PATTERN: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
    [A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// Kubernetes labels to match. A structural schema cannot describe keys, so
/// a rule does.
pub fn label_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{
            "rule": format!("self.all(key, key.matches('{LABEL_KEY_PATTERN}') && size(key.split('/')[0]) <= 253)"),
            "message": "each key must be a label key: an optional DNS prefix and '/', then a name of at most 63 letters, digits, '-', '_' or '.'",
        }],
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": LABEL_VALUE_PATTERN,
        },
    })
}

/// Claims that a device reports about itself.
pub fn claim_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{
            "rule": "self.all(key, key.matches('^[A-Za-z0-9][-A-Za-z0-9_.:/]{0,252}$'))",
            "message": "each key must be a claim name: at most 253 letters, digits, '-', '_', '.', ':' or '/'",
        }],
        "additionalProperties": { "type": "string", "maxLength": 253 },
    })
}

/// An RFC 3339 time.
pub fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "maxLength": 64 })
}

/// Turns what the derive produces into what the API server should enforce.
pub fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas = crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for schema in schemas {
        for_each(schema, &mut tidy);
        if let Some(status) = schema.properties.as_mut().and_then(|all| all.get_mut("status")) {
            // A default here would look like a reported value.
            for_each(status, &mut |schema| schema.default = None);
        }
    }
    crd
}

fn tidy(schema: &mut JSONSchemaProps) {
    // The derive lets every optional field be null, and null skips all other
    // checks of a field. Leaving the field out is the one way to say nothing.
    schema.nullable = None;
    if let Some(values) = schema.enum_.as_mut() {
        values.retain(|value| !value.0.is_null());
    }
    // Lines of a doc comment end where the source does, not where a reader's
    // screen does.
    if let Some(description) = schema.description.as_mut() {
        *description = description.replace('\n', " ");
    }
    // Kubernetes knows only signed formats; minimum and maximum say the rest.
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = Some("int64".into());
    }
}

/// Calls `visit` on the schema and on every schema inside it.
fn for_each(schema: &mut JSONSchemaProps, visit: &mut impl FnMut(&mut JSONSchemaProps)) {
    visit(schema);
    for property in schema.properties.iter_mut().flat_map(|all| all.values_mut()) {
        for_each(property, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = schema.items.as_mut() {
        for_each(items, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = schema.additional_properties.as_mut() {
        for_each(values, visit);
    }
}
