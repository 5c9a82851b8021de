//! `metadata.managedFields`: which manager has written which field. Nothing of it is kept but one answer.

use std::fmt;

use crds::annotations::RESULTS;
use memchr::memmem;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Whether a field manager is named for a result annotation. The API server names none for a Binding (tried), so a
/// named one has written the annotation itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnedFields {
    pub names_a_result: bool,
}

impl OwnedFields {
    /// Of the JSON of one entry's `fieldsV1`.
    pub fn entry_names_a_result(fields: &[u8]) -> bool {
        might_name_a_result(fields)
            && serde_json::from_slice::<Fields>(fields)
                .is_ok_and(|fields| fields.metadata.annotations.0)
    }
}

/// Most entries need not be read: they do not name our annotations, neither in plain nor in other letters.
fn might_name_a_result(fields: &[u8]) -> bool {
    const ESCAPED: &[u8] = b"\\u";
    memmem::find(fields, DOMAIN).is_some() || memmem::find(fields, ESCAPED).is_some()
}

/// Of all result annotations. Without the slash behind it, which may be escaped.
const DOMAIN: &[u8] = b"corridoros.io";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(rename = "fieldsV1")]
    fields: Fields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:metadata")]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(rename = "f:annotations")]
    annotations: Annotations,
}

/// Whether a result is among them.
#[derive(Default)]
struct Annotations(bool);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Annotations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the names of annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut found = false;
                while let Some(name) = map.next_key::<String>()? {
                    found |= name.strip_prefix("f:").is_some_and(|name| RESULTS.contains(&name));
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(Annotations(found))
            }
        }
        from.deserialize_map(Names)
    }
}

impl<'de> Deserialize<'de> for OwnedFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = OwnedFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("managed fields")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<OwnedFields, A::Error> {
                let mut names_a_result = false;
                while let Some(entry) = entries.next_element::<Entry>()? {
                    names_a_result |= entry.fields.metadata.annotations.0;
                }
                Ok(OwnedFields { names_a_result })
            }

            fn visit_unit<E>(self) -> Result<OwnedFields, E> {
                Ok(OwnedFields::default())
            }
        }
        from.deserialize_any(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn names_a_result(entries: Value) -> bool {
        serde_json::from_value::<OwnedFields>(entries).unwrap().names_a_result
    }

    #[test]
    fn only_a_result_annotation_is_of_interest() {
        let entry = |name: &str| {
            json!({
                "manager": "kubectl-annotate", "operation": "Update", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:annotations": {".": {}, name: {}}, "f:labels": {"f:x": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"m\"}": {"f:image": {}}}},
                },
            })
        };
        assert!(names_a_result(json!([entry("f:note"), entry("f:corridoros.io/grant")])));
        assert!(names_a_result(json!([entry("f:corridoros.io/leader")])));
        assert!(!names_a_result(json!([entry("f:corridoros.io/corridorRef"), {}])));
        assert!(!names_a_result(json!([])) && !names_a_result(Value::Null));
    }

    #[test]
    fn the_json_of_one_entry_tells_the_same_however_it_is_written() {
        for result in RESULTS {
            assert!(result.as_bytes().starts_with(DOMAIN));
        }
        let names = |annotation: &str| {
            let fields = format!(r#"{{"f:metadata":{{"f:annotations":{{"{annotation}":{{}}}}}}}}"#);
            OwnedFields::entry_names_a_result(fields.as_bytes())
        };
        assert!(names("f:corridoros.io/grant") && names(r"f:corridoros.io\/grant"));
        assert!(names(r"f:\u0063orridoros.io/grant") && names(r"\u0066:corridoros.io/grant"));
        assert!(!names("f:corridoros.io/corridorRef") && !names("f:note"));
        assert!(!OwnedFields::entry_names_a_result(b""));
    }
}
