//! The little protobuf that kubectl sends: its `create namespace|configmap|secret|…` commands and
//! typed deletions offer no JSON. Answers are always JSON, which its clients take.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

/// What starts every message of Kubernetes.
const MAGIC: &[u8] = b"k8s\0";

/// The messages that can be read, by kind. Numbers and names are those of Kubernetes' `.proto` files.
const MESSAGES: &[(&str, &[Field])] = &[
    ("Namespace", &[(1, "metadata", Kind::Message(METADATA))]),
    (
        "ConfigMap",
        &[
            (1, "metadata", Kind::Message(METADATA)),
            (2, "data", Kind::TextMap),
            (3, "binaryData", Kind::BytesMap),
            (4, "immutable", Kind::Flag),
        ],
    ),
    (
        "Secret",
        &[
            (1, "metadata", Kind::Message(METADATA)),
            (2, "data", Kind::BytesMap),
            (3, "type", Kind::Text),
            (5, "immutable", Kind::Flag),
        ],
    ),
    ("ServiceAccount", &[(1, "metadata", Kind::Message(METADATA))]),
    (
        "PriorityClass",
        &[
            (1, "metadata", Kind::Message(METADATA)),
            (2, "value", Kind::Number),
            (3, "globalDefault", Kind::Flag),
            (4, "description", Kind::Text),
            (5, "preemptionPolicy", Kind::Text),
        ],
    ),
    (
        "Binding",
        &[(1, "metadata", Kind::Message(METADATA)), (2, "target", Kind::Message(REFERENCE))],
    ),
    (
        "DeleteOptions",
        &[
            (1, "gracePeriodSeconds", Kind::Number),
            (
                2,
                "preconditions",
                Kind::Message(&[(1, "uid", Kind::Text), (2, "resourceVersion", Kind::Text)]),
            ),
            (4, "propagationPolicy", Kind::Text),
            (5, "dryRun", Kind::Texts),
        ],
    ),
];

const METADATA: &[Field] = &[
    (1, "name", Kind::Text),
    (2, "generateName", Kind::Text),
    (3, "namespace", Kind::Text),
    (5, "uid", Kind::Text),
    (6, "resourceVersion", Kind::Text),
    (8, "creationTimestamp", Kind::Time),
    (11, "labels", Kind::TextMap),
    (12, "annotations", Kind::TextMap),
    (14, "finalizers", Kind::Texts),
];

const REFERENCE: &[Field] =
    &[(1, "kind", Kind::Text), (2, "namespace", Kind::Text), (3, "name", Kind::Text)];

/// Number, JSON name, and what the field holds.
type Field = (u64, &'static str, Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Texts,
    Flag,
    Number,
    Time,
    TextMap,
    BytesMap,
    Message(&'static [Field]),
}

/// The JSON form of a message; `Err` says why there is none.
pub(crate) fn to_json(bytes: &[u8]) -> Result<Value, String> {
    let bytes =
        bytes.strip_prefix(MAGIC).ok_or("it does not start as a Kubernetes message does")?;
    let (mut kind, mut api_version, mut raw) = (String::new(), String::new(), &[][..]);
    each_field(bytes, |number, value| {
        match (number, value) {
            (1, Wire::Bytes(type_meta)) => each_field(type_meta, |number, value| {
                match (number, value) {
                    (1, Wire::Bytes(text)) => api_version = plain(text),
                    (2, Wire::Bytes(text)) => kind = plain(text),
                    _ => {}
                }
                Ok(())
            })?,
            (2, Wire::Bytes(object)) => raw = object,
            _ => {}
        }
        Ok(())
    })?;
    let message = MESSAGES.iter().find(|(name, _)| *name == kind);
    let (_, fields) = message.ok_or_else(|| format!("a {kind} is only understood as JSON"))?;
    let mut object = message_to_json(raw, fields)?;
    object.insert("kind".to_owned(), json!(kind));
    object.insert("apiVersion".to_owned(), json!(api_version));
    Ok(Value::Object(object))
}

fn message_to_json(bytes: &[u8], fields: &[Field]) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    each_field(bytes, |number, value| {
        let Some((_, name, kind)) = fields.iter().find(|(known, ..)| *known == number) else {
            return Ok(());
        };
        let slot = object.entry(*name).or_insert(Value::Null);
        match (kind, value) {
            (Kind::Text, Wire::Bytes(text)) => *slot = json!(plain(text)),
            (Kind::Flag, Wire::Number(number)) => *slot = json!(number != 0),
            (Kind::Number, Wire::Number(number)) => *slot = json!(number.cast_signed()),
            (Kind::Time, Wire::Bytes(time)) => *slot = time_to_json(time)?,
            (Kind::Message(fields), Wire::Bytes(inner)) => {
                *slot = message_to_json(inner, fields)?.into();
            }
            (Kind::Texts, Wire::Bytes(text)) => match slot {
                Value::Array(texts) => texts.push(json!(plain(text))),
                _ => *slot = json!([plain(text)]),
            },
            (Kind::TextMap | Kind::BytesMap, Wire::Bytes(entry)) => {
                let (key, value) = map_entry(entry)?;
                let value = match kind {
                    Kind::TextMap => json!(plain(value)),
                    _ => json!(ByteString(value.to_vec())),
                };
                crate::json::as_map(slot).insert(key, value);
            }
            _ => return Err(format!("the field {name} has another type")),
        }
        Ok(())
    })?;
    // An empty text is how a protobuf message says that there is none.
    object.retain(|_, value| value != "" && !value.is_null());
    Ok(object)
}

fn map_entry(entry: &[u8]) -> Result<(String, &[u8]), String> {
    let (mut key, mut content) = (String::new(), &[][..]);
    each_field(entry, |number, value| {
        match (number, value) {
            (1, Wire::Bytes(text)) => key = plain(text),
            (2, Wire::Bytes(bytes)) => content = bytes,
            _ => {}
        }
        Ok(())
    })?;
    Ok((key, content))
}

fn time_to_json(bytes: &[u8]) -> Result<Value, String> {
    let mut seconds = None;
    each_field(bytes, |number, value| {
        if let (1, Wire::Number(number)) = (number, value) {
            seconds = Timestamp::from_second(number.cast_signed()).ok();
        }
        Ok(())
    })?;
    Ok(seconds.map_or(Value::Null, |time| json!(time.to_string())))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn plain(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Calls `visit` with the number and content of each field.
fn each_field<'a>(
    mut bytes: &'a [u8],
    mut visit: impl FnMut(u64, Wire<'a>) -> Result<(), String>,
) -> Result<(), String> {
    const CUT_OFF: &str = "the message is cut off";
    while !bytes.is_empty() {
        let tag = varint(&mut bytes).ok_or(CUT_OFF)?;
        let length = match tag & 7 {
            0 => {
                visit(tag >> 3, Wire::Number(varint(&mut bytes).ok_or(CUT_OFF)?))?;
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes).ok_or(CUT_OFF)?,
            5 => 4,
            other => return Err(format!("wire type {other} is unknown")),
        };
        let length = usize::try_from(length).map_err(|_| CUT_OFF)?;
        let (content, rest) = bytes.split_at_checked(length).ok_or(CUT_OFF)?;
        visit(tag >> 3, Wire::Bytes(content))?;
        bytes = rest;
    }
    Ok(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    const BITS_MAX: u32 = 63;
    let mut value = 0;
    for shift in (0..=BITS_MAX).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of text or of a message.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        [&[number << 3 | 2, length], content].concat()
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &type_meta), field(2, raw)].concat()
    }

    #[test]
    fn a_secret_becomes_json() {
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let metadata = [field(1, b"s"), field(2, b""), field(8, b"")].concat();
        let secret = [field(1, &metadata), field(2, &entry), field(3, b"Opaque"), vec![5 << 3, 1]];
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" },
            "data": { "k": "dg==" }, "type": "Opaque", "immutable": true,
        });
        assert_eq!(to_json(&envelope("Secret", &secret.concat())).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let good = envelope("Namespace", &field(1, &field(1, b"team")));
        assert!(to_json(&good).is_ok());
        for end in 5..good.len() {
            let _ = to_json(&good[..end]);
        }
        for bad in [&b""[..], b"k8s", b"k8s\0\xff", b"k8s\0\x0a\x7fx", &envelope("Pod", b"")] {
            assert!(to_json(bad).is_err());
        }
    }
}
