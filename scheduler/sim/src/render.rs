//! Objects and lists in the form a client asked for: as they are, as metadata only, or as the table
//! that `kubectl get` prints.

use std::sync::Arc;

use axum::body::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catalog::{ResourceType, Rules};
use crate::columns;
use crate::custom::PrinterColumn;
use crate::events;
use crate::json::text;
use crate::jsonpath::plain;
use crate::pages::Page;
use crate::refusal::Refusal;
use crate::request::Form;
use crate::stored::Stored;

#[derive(Debug, Clone)]
pub(crate) struct Renderer {
    ty: Arc<ResourceType>,
    form: Form,
    /// What a table's row says of its object: `None`, `Metadata` or `Object`.
    include_object: String,
}

impl Renderer {
    pub fn new(ty: &Arc<ResourceType>, form: Form, include_object: &str) -> Self {
        Self { ty: ty.clone(), form, include_object: include_object.to_owned() }
    }

    pub fn object(&self, object: &Stored) -> Result<Bytes, Refusal> {
        if self.form == Form::Object && self.ty.rules != Rules::NewEvent {
            return Ok(object.json.clone());
        }
        Ok(self.value(object.value()?, object.revision).to_string().into())
    }

    /// One object, given as its stored value.
    pub fn value(&self, mut value: Value, revision: u64) -> Value {
        match self.form {
            Form::Object => {
                events::to_shown(&self.ty, &mut value);
                value
            }
            Form::Metadata => partial_metadata(&value),
            Form::Table => self.table(&[self.row(&value, Timestamp::now())], revision),
        }
    }

    pub fn list(&self, page: &Page) -> Result<Bytes, Refusal> {
        let objects = &page.objects;
        if self.form == Form::Table {
            let now = Timestamp::now();
            let rows = objects.iter().map(|object| Ok(self.row(&object.value()?, now)));
            let rows = rows.collect::<Result<Vec<_>, Refusal>>()?;
            let mut table = self.table(&rows, page.revision);
            table["metadata"] = list_metadata(page);
            return Ok(table.to_string().into());
        }
        let (kind, api_version) = match self.form {
            Form::Metadata => ("PartialObjectMetadataList".to_owned(), META_V1.to_owned()),
            _ => (format!("{}List", self.ty.kind), self.ty.api_version()),
        };
        let head = format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\
             \"metadata\":{},\"items\":[",
            list_metadata(page)
        );
        let size: usize = objects.iter().map(|object| object.json.len() + 1).sum();
        let mut bytes = Vec::with_capacity(head.len() + size + 2);
        bytes.extend_from_slice(head.as_bytes());
        for (index, object) in objects.iter().enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(&self.object(object)?);
        }
        bytes.extend_from_slice(b"]}");
        Ok(bytes.into())
    }

    /// The object of a `BOOKMARK` event.
    pub fn bookmark(&self, revision: u64, initial_events_end: bool) -> Value {
        if self.form == Form::Table {
            return self.table(&[], revision);
        }
        let (kind, api_version) = match self.form {
            Form::Metadata => ("PartialObjectMetadata", META_V1.to_owned()),
            _ => (self.ty.kind.as_str(), self.ty.api_version()),
        };
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if initial_events_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata })
    }

    fn printer_columns(&self) -> &[PrinterColumn] {
        self.ty.custom.as_ref().map_or(&[], |custom| custom.columns.as_slice())
    }

    fn table(&self, rows: &[Value], revision: u64) -> Value {
        let definition = |name: &str, kind: &str, priority: i32| {
            let format = if name == "Name" { "name" } else { "" };
            json!({
                "name": name, "type": kind, "format": format, "priority": priority,
                "description": "",
            })
        };
        let printer_columns = self.printer_columns();
        let definitions: Vec<Value> = if printer_columns.is_empty() {
            let columns = self.ty.columns.iter();
            columns.map(|column| definition(column.name, column.kind, column.priority)).collect()
        } else {
            let columns = printer_columns.iter();
            let columns = columns.map(|it| definition(&it.name, &it.kind, it.priority));
            std::iter::once(definition("Name", "string", 0)).chain(columns).collect()
        };
        json!({
            "kind": "Table",
            "apiVersion": META_V1,
            "metadata": { "resourceVersion": revision.to_string() },
            "columnDefinitions": definitions,
            "rows": rows,
        })
    }

    fn row(&self, object: &Value, now: Timestamp) -> Value {
        let printer_columns = self.printer_columns();
        let cells: Vec<Value> = if printer_columns.is_empty() {
            self.ty.columns.iter().map(|column| (column.cell)(object, now)).collect()
        } else {
            let name = json!(text(object, "/metadata/name"));
            let cells = printer_columns.iter().map(|column| printed(column, object, now));
            std::iter::once(name).chain(cells).collect()
        };
        match self.include_object.as_str() {
            "None" => json!({ "cells": cells }),
            "Object" => {
                let mut shown = object.clone();
                events::to_shown(&self.ty, &mut shown);
                json!({ "cells": cells, "object": shown })
            }
            _ => json!({ "cells": cells, "object": partial_metadata(object) }),
        }
    }
}

fn list_metadata(page: &Page) -> Value {
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if !page.next.is_empty() {
        metadata["continue"] = json!(page.next);
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}

const META_V1: &str = "meta.k8s.io/v1";

fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": META_V1,
        "metadata": object.get("metadata"),
    })
}

/// A printer column's cell; nothing found is an empty cell.
fn printed(column: &PrinterColumn, object: &Value, now: Timestamp) -> Value {
    let found = column.path.find(object);
    match (column.kind.as_str(), found.as_slice()) {
        (_, []) => Value::Null,
        ("date", [time, ..]) => columns::age(time.as_str().unwrap_or_default(), now),
        ("string", values) => {
            json!(values.iter().map(|value| plain(value)).collect::<Vec<_>>().join(","))
        }
        (_, [value, ..]) => (*value).clone(),
    }
}
