//! Events have two API groups with different field names for the same objects. They are stored
//! under the names of core/v1.

use serde_json::{Value, json};

use crate::catalog::{ResourceType, Rules};
use crate::json::as_map;

/// events.k8s.io/v1 name, core/v1 name.
const NAMES: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From the form `ty` shows to the stored form.
pub(crate) fn to_stored(ty: &ResourceType, object: &mut Value) {
    if ty.rules == Rules::NewEvent {
        let map = as_map(object);
        for (new, core) in NAMES {
            if let Some(value) = map.remove(*new) {
                map.insert((*core).to_owned(), value);
            }
        }
        map.insert("apiVersion".to_owned(), json!("v1"));
    }
}

/// From the stored form to the one `ty` shows.
pub(crate) fn to_shown(ty: &ResourceType, object: &mut Value) {
    if ty.rules == Rules::NewEvent {
        let map = as_map(object);
        for (new, core) in NAMES {
            if let Some(value) = map.remove(*core) {
                map.insert((*new).to_owned(), value);
            }
        }
        map.insert("apiVersion".to_owned(), json!(ty.api_version()));
    }
}
