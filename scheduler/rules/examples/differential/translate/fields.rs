//! Fields of JSON objects. What is absent is empty, as in the API.

use std::sync::Arc;

use model::{Labels, ResourceList};
use serde_json::Value;

pub fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}

pub fn items(field: &Value) -> &[Value] {
    field.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn texts(field: &Value) -> impl Iterator<Item = Arc<str>> {
    items(field).iter().map(|item| text(item).into())
}

pub fn int(field: &Value) -> i64 {
    field.as_i64().expect("a number")
}

pub fn small_int(field: &Value) -> i32 {
    int(field).try_into().expect("a small number")
}

pub fn labels(field: &Value) -> Labels {
    let pairs = field.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.as_str().into(), text(value).into())).collect()
}

pub fn resource_list(field: &Value) -> ResourceList {
    let pairs = field.as_object().into_iter().flatten();
    let amount = |value: &Value| text(value).parse().expect("a quantity");
    pairs.map(|(name, value)| (name.as_str().into(), amount(value))).collect()
}
