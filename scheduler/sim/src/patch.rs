//! JSON patch, merge patch, strategic merge patch, and the merge of server-side apply.
//!
//! Apply keeps no record of the owners of fields: a field that an earlier apply set and this one leaves
//! out stays.

use serde_json::Value;

use crate::catalog::ResourceType;
use crate::custom;
use crate::json::as_map;
use crate::json_patch::{self, Operation};
use crate::refusal::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub fn from_content_type(content_type: &str, ty: &ResourceType) -> Result<Self, Refusal> {
        let kind = match content_type {
            "application/merge-patch+json" => Self::Merge,
            "application/strategic-merge-patch+json" if ty.custom.is_none() => Self::Strategic,
            "application/apply-patch+yaml" | "application/apply-patch+json" => Self::Apply,
            "application/json-patch+json" => Self::Json,
            _ if ty.custom.is_some() => {
                let why = "the body of the request was in an unknown format - accepted media types \
                           include: application/json-patch+json, application/merge-patch+json, \
                           application/apply-patch+yaml";
                return Err(Refusal::unsupported_media_type(why));
            }
            _ => return Err(Refusal::unsupported_media_type("415: Unsupported Media Type")),
        };
        Ok(kind)
    }

    pub fn verb(self) -> &'static str {
        match self {
            Self::Json | Self::Merge | Self::Strategic => "patch",
            Self::Apply => "apply",
        }
    }
}

/// What a request wants to change.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(Vec<Operation>),
    Merge(Value),
    /// Strategic or applied: with knowledge of lists.
    Keyed(Value),
}

impl Patch {
    /// `object` with this applied.
    pub fn applied_to(&self, ty: &ResourceType, object: &Value) -> Result<Value, Refusal> {
        let mut result = object.clone();
        match self {
            Self::Json(operations) => json_patch::apply(&mut result, operations)?,
            Self::Merge(patch) => merge(&mut result, patch),
            Self::Keyed(patch) => {
                let knowledge = match &ty.custom {
                    Some(custom) => Knowledge::Schema(Some(&custom.schema)),
                    None => Knowledge::Builtin,
                };
                merge_maps(&mut result, patch, knowledge);
            }
        }
        Ok(result)
    }
}

/// How two versions of a list become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    /// Items with equal values of these fields are the same item.
    Map(Vec<String>),
}

/// Lists of the built-in types that merge by a key. The names are unique enough among the types
/// served here to be found without their path.
const BUILTIN_LISTS: &[(&str, &str)] = &[
    ("addresses", "type"),
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("hostIPs", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ownerReferences", "uid"),
    ("podIPs", "ip"),
    ("ports", "containerPort"),
    ("resourceClaimStatuses", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("secrets", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];

const BUILTIN_SETS: &[&str] = &["finalizers", "podCIDRs"];

/// What is known about the lists below some place of an object.
#[derive(Debug, Clone, Copy)]
enum Knowledge<'a> {
    Builtin,
    Schema(Option<&'a Value>),
}

impl Knowledge<'_> {
    fn of_field(self, field: &str) -> Self {
        match self {
            Self::Builtin => Self::Builtin,
            // The metadata of custom resources is not described by their schema.
            Self::Schema(_) if field == "metadata" => Self::Builtin,
            Self::Schema(schema) => {
                Self::Schema(schema.and_then(|schema| custom::field_schema(schema, field)))
            }
        }
    }

    fn of_items(self) -> Self {
        match self {
            Self::Builtin => Self::Builtin,
            Self::Schema(schema) => Self::Schema(schema.and_then(|schema| schema.get("items"))),
        }
    }

    /// `self` is what is known about the list called `name`.
    fn list_kind(self, name: &str) -> ListKind {
        match self {
            Self::Schema(schema) => schema.map_or(ListKind::Atomic, custom::list_kind),
            Self::Builtin if BUILTIN_SETS.contains(&name) => ListKind::Set,
            Self::Builtin => match BUILTIN_LISTS.iter().find(|(list, _)| *list == name) {
                Some((_, key)) => ListKind::Map(vec![(*key).to_owned()]),
                None => ListKind::Atomic,
            },
        }
    }

    fn map_is_atomic(self) -> bool {
        matches!(self, Self::Schema(Some(schema))
            if schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"))
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let target = as_map(target);
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Merges `patch` into `target` with knowledge of lists. The directives that start with `$` belong
/// to strategic merge patches; an applied object has none. `$setElementOrder` is ignored.
fn merge_maps(target: &mut Value, patch: &Value, knowledge: Knowledge) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let target = as_map(target);
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        target.clear();
    }
    if let Some(Value::Array(keys)) = patch.get("$retainKeys") {
        target.retain(|key, _| keys.iter().any(|kept| kept == key));
    }
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (target.get_mut(list), value) {
                items.retain(|item| !gone.contains(item));
            }
        } else if key.starts_with('$') {
            // Already obeyed, or an order of elements.
        } else if value.is_null() || is_deletion(value) {
            target.remove(key);
        } else {
            let inner = knowledge.of_field(key);
            let place = target.entry(key).or_insert(Value::Null);
            match value {
                Value::Array(items) => merge_lists(place, items, inner.list_kind(key), inner),
                Value::Object(_) if !inner.map_is_atomic() => merge_maps(place, value, inner),
                _ => *place = value.clone(),
            }
        }
    }
}

fn merge_lists(target: &mut Value, items: &[Value], kind: ListKind, knowledge: Knowledge) {
    let Value::Array(old) = target else {
        *target = Value::Array(Vec::new());
        return merge_lists(target, items, kind, knowledge);
    };
    let replaces = |item: &Value| item.get("$patch").is_some_and(|it| it == "replace");
    match kind {
        ListKind::Atomic => *target = Value::Array(items.to_vec()),
        ListKind::Set => {
            let new = items.iter().filter(|item| !old.contains(item)).cloned().collect::<Vec<_>>();
            old.extend(new);
        }
        ListKind::Map(_) if items.iter().any(replaces) => {
            let kept = items.iter().filter(|item| !replaces(item)).cloned();
            *target = Value::Array(kept.collect());
        }
        ListKind::Map(keys) => {
            for item in items {
                let same = |other: &Value| keys.iter().all(|key| other.get(key) == item.get(key));
                if is_deletion(item) {
                    old.retain(|other| !same(other));
                } else if let Some(found) = old.iter_mut().find(|other| same(other)) {
                    merge_maps(found, item, knowledge.of_items());
                } else {
                    let mut added = Value::Null;
                    merge_maps(&mut added, item, knowledge.of_items());
                    old.push(added);
                }
            }
        }
    }
}

fn is_deletion(value: &Value) -> bool {
    value.get("$patch").is_some_and(|directive| directive == "delete")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn strategic(mut target: Value, patch: &Value) -> Value {
        merge_maps(&mut target, patch, Knowledge::Builtin);
        target
    }

    #[test]
    fn conditions_merge_by_type() {
        let pod = json!({ "status": { "conditions": [
            { "type": "Ready", "status": "False", "reason": "x" },
            { "type": "PodScheduled", "status": "False" },
        ]}});
        let patch = json!({ "status": { "$setElementOrder/conditions": [{ "type": "PodScheduled" }],
            "conditions": [
                { "type": "PodScheduled", "status": "True", "reason": null },
                { "type": "New", "status": "True", "message": null },
                { "type": "Ready", "$patch": "delete" },
        ]}});
        let expected = json!({ "status": { "conditions": [
            { "type": "PodScheduled", "status": "True" }, { "type": "New", "status": "True" },
        ]}});
        assert_eq!(strategic(pod, &patch), expected);
    }

    #[test]
    fn taints_and_tolerations_are_replaced_as_a_whole() {
        let node = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } });
        let patch = json!({ "spec": { "taints": [{ "key": "b", "effect": "NoExecute" }] } });
        assert_eq!(strategic(node, &patch), patch);
    }

    #[test]
    fn finalizers_are_a_set_with_explicit_removal() {
        let object = json!({ "metadata": { "finalizers": ["a", "b"] } });
        let patch = json!({ "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["b", "c"],
        }});
        let expected = json!({ "metadata": { "finalizers": ["b", "c"] } });
        assert_eq!(strategic(object, &patch), expected);
    }

    #[test]
    fn directives_replace_and_delete_maps() {
        let object = json!({ "a": { "x": 1 }, "b": { "y": 1 }, "c": { "p": 1, "q": 2 } });
        let patch = json!({
            "a": { "$patch": "replace", "z": 2 }, "b": { "$patch": "delete" },
            "c": { "$retainKeys": ["q"], "q": 3 },
        });
        assert_eq!(strategic(object, &patch), json!({ "a": { "z": 2 }, "c": { "q": 3 } }));
    }

    #[test]
    fn applied_lists_of_custom_resources_follow_their_schema() {
        let schema = json!({ "properties": { "status": { "properties": {
            "conditions": { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] },
            "plain": { "type": "array" },
            "names": { "x-kubernetes-list-type": "set" },
        }}}});
        let mut object = json!({ "status": {
            "conditions": [{ "type": "A", "status": "True" }], "plain": [1, 2], "names": ["a"],
        }});
        let patch = json!({ "status": {
            "conditions": [{ "type": "B", "status": "True" }], "plain": [3], "names": ["b", "a"],
        }});
        merge_maps(&mut object, &patch, Knowledge::Schema(Some(&schema)));
        let expected = json!({ "status": {
            "conditions": [{ "type": "A", "status": "True" }, { "type": "B", "status": "True" }],
            "plain": [3], "names": ["a", "b"],
        }});
        assert_eq!(object, expected);
    }

    #[test]
    fn merge_patch_replaces_lists_and_drops_nulls() {
        let mut object = json!({ "a": [1], "b": { "c": 1, "d": 2 } });
        merge(&mut object, &json!({ "a": [2], "b": { "c": null }, "e": { "f": null } }));
        assert_eq!(object, json!({ "a": [2], "b": { "d": 2 }, "e": {} }));
    }
}
