//! Every field of the configuration, out of the types that read it.

use std::collections::BTreeMap;

use controllers::CorridorConfiguration;
use schemars::schema_for;
use serde_json::Value;

use super::{Table, row};

pub fn tables() -> Vec<Table> {
    let mut scheduler = driver::described().into_iter();
    let document = scheduler.next().unwrap();
    let args: Vec<String> = scheduler
        .map(|plugin| {
            let fields = text(plugin.schema.as_value(), &plugin.defaults);
            format!("#### {}\n\n{fields}", plugin.title)
        })
        .collect();
    let corridor = schema_for!(CorridorConfiguration);
    let defaults = serde_json::to_value(CorridorConfiguration::in_force_by_default()).unwrap();
    vec![
        Table {
            name: "fields of KubeSchedulerConfiguration",
            text: text(document.schema.as_value(), &document.defaults),
        },
        Table { name: "args of plugins", text: args.join("\n") },
        Table {
            name: "fields of CorridorConfiguration",
            text: text(corridor.as_value(), &defaults),
        },
    ]
}

fn text(schema: &Value, defaults: &Value) -> String {
    let mut walk =
        Walk { definitions: &schema["$defs"], shown: BTreeMap::new(), rows: String::new() };
    walk.fields("", schema, defaults);
    row(["Field", "Type", "Default", "Meaning"]) + "|---|---|---|---|\n" + &walk.rows
}

struct Walk<'a> {
    definitions: &'a Value,
    /// Types whose fields have been told, and where.
    shown: BTreeMap<String, String>,
    rows: String,
}

impl<'a> Walk<'a> {
    fn fields(&mut self, path: &str, object: &'a Value, defaults: &Value) {
        for (name, field) in object["properties"].as_object().into_iter().flatten() {
            let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.field(&place, field, &defaults[name]);
        }
    }

    fn field(&mut self, place: &str, field: &'a Value, default: &Value) {
        let (named, mut meant) = self.resolve(field);
        let (mut inside, mut default, mut named) = (place.to_owned(), default.clone(), named);
        let told =
            [field, meant].iter().find_map(|it| it["description"].as_str()).unwrap_or_default();
        let mut kind = kind(meant);
        if kind == "list" {
            let (item_name, item) = self.resolve(&meant["items"]);
            kind = format!("list of {}", self::kind(item));
            inside += "[]";
            default = default[0].clone();
            (named, meant) = (item_name, item);
        }
        let shown = match &default {
            Value::Null | Value::Object(_) | Value::Array(_) => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let earlier = named.as_ref().and_then(|name| self.shown.get(name)).cloned();
        let told = match &earlier {
            Some(earlier) => format!("{told} Fields as in `{earlier}`.").trim_start().to_owned(),
            None => told.to_owned(),
        };
        assert!(!told.is_empty(), "say what {place} is, in a comment before the field");
        self.rows += &row([&format!("`{place}`"), &kind, &shown, &told]);
        if earlier.is_none() && meant["properties"].is_object() {
            if let Some(name) = named {
                self.shown.insert(name, inside.clone());
            }
            self.fields(&inside, meant, &default);
        }
    }

    /// The name of a type and what it is: a field may refer to it, or to it or nothing.
    fn resolve(&self, field: &'a Value) -> (Option<String>, &'a Value) {
        let choices = field["anyOf"].as_array().into_iter().flatten();
        let mut referring = [field].into_iter().chain(choices);
        let name = referring.find_map(|it| it["$ref"].as_str()?.strip_prefix("#/$defs/"));
        match name {
            Some(name) => (Some(name.to_owned()), &self.definitions[name]),
            None => (None, field),
        }
    }
}

fn kind(meant: &Value) -> String {
    let values = meant["enum"].as_array().into_iter().flatten();
    let choices = meant["oneOf"].as_array().into_iter().flatten().map(|it| &it["const"]);
    let values: Vec<_> =
        values.chain(choices).filter_map(|it| Some(format!("`{}`", it.as_str()?))).collect();
    if !values.is_empty() {
        return values.join(" or ");
    }
    let kinds = match &meant["type"] {
        Value::Array(kinds) => kinds.as_slice(),
        one => std::slice::from_ref(one),
    };
    match kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null") {
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("string") => "text".to_owned(),
        Some("array") => "list".to_owned(),
        Some(kind) => kind.to_owned(),
        None => "anything".to_owned(),
    }
}
