//! What the server does to every object that is created or changed: identity, times, generation,
//! and which parts a request may touch.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::{Catalog, ResourceType, Rules};
use crate::defaults;
use crate::events;
use crate::json::{as_map, drop_nulls, list, metadata, section, take_over, text, unify_quantities};
use crate::naming::{check_name, new_name, new_uid};
use crate::pod;
use crate::refusal::Refusal;
use crate::request::Target;
use crate::store::{Next, Store};
use crate::stored::Key;

/// The state in which a new object is stored.
pub(crate) fn prepare_new(
    catalog: &Catalog,
    store: &Store,
    target: &Target,
    mut object: Value,
) -> Result<(Key, Value), Refusal> {
    let ty = target.ty.as_ref();
    check_form(ty, &mut object)?;
    check_namespace(target, &mut object)?;
    let versioned = !text(&object, "/metadata/resourceVersion").is_empty();
    let name = new_name(&object);
    let meta = metadata(&mut object);
    for field in SERVER_FIELDS {
        meta.remove(*field);
    }
    meta.insert("name".to_owned(), json!(name));
    meta.insert("uid".to_owned(), json!(new_uid()));
    meta.insert("creationTimestamp".to_owned(), json!(now()));
    if ty.has_generation() {
        meta.insert("generation".to_owned(), json!(1));
    }
    events::to_stored(ty, &mut object);
    match ty.rules {
        Rules::Pod => pod::prepare_new(catalog, store, ty, &name, &mut object)?,
        Rules::Namespace => defaults::new_namespace(&mut object),
        Rules::Node => defaults::new_node(&mut object),
        Rules::Controlled | Rules::Service | Rules::Budget | Rules::Custom => {
            if ty.has_status {
                as_map(&mut object).remove("status");
            }
            shape(ty, &mut object);
        }
        Rules::Plain
        | Rules::PriorityClass
        | Rules::Secret
        | Rules::Lease
        | Rules::Event
        | Rules::NewEvent
        | Rules::Definition => {}
    }
    defaults::fill_in(ty, &mut object);
    // As in the real server, admission comes first: here, the priority of Pods.
    check_name(ty, &name)?;
    if versioned {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::internal(why));
    }
    Ok((Key::new(target.namespace_key(), &name), object))
}

/// Fields of the metadata that only the server sets.
const SERVER_FIELDS: &[&str] = &[
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "resourceVersion",
];

/// What `new` makes of `old`: the request may only touch what it is meant for.
pub(crate) fn prepare_update(
    target: &Target,
    old: &Value,
    mut new: Value,
) -> Result<Next, Refusal> {
    let ty = target.ty.as_ref();
    check_form(ty, &mut new)?;
    check_namespace(target, &mut new)?;
    let name = target.name.as_deref().unwrap_or_default();
    check_identity(ty, &Key::new(target.namespace_key(), name), old, &new)?;
    if ty.needs_version() && text(&new, "/metadata/resourceVersion").is_empty() {
        return Err(Refusal::version_required(ty, name));
    }
    check_finalizers(ty, name, old, &new)?;
    events::to_stored(ty, &mut new);
    defaults::fill_in(ty, &mut new);
    for field in SERVER_FIELDS {
        let old = old.get("metadata").unwrap_or(&Value::Null);
        take_over(as_map(&mut new).entry("metadata").or_insert(Value::Null), old, field);
    }
    if target.subresource == "status" {
        keep_all_but_status(ty, old, &mut new);
    } else if ty.has_status {
        take_over(&mut new, old, "status");
    }
    shape(ty, &mut new);
    if ty.rules == Rules::PriorityClass && old.get("value") != new.get("value") {
        let why = "Forbidden: may not be changed in an update.";
        return Err(Refusal::invalid(ty, name, "value", why));
    }
    if ty.rules == Rules::Pod {
        pod::check_update(ty, name, &target.subresource, old, &mut new)?;
    }
    // The real server never counts up that of a PriorityClass.
    let counts = ty.has_generation() && ty.rules != Rules::PriorityClass;
    if counts && wants_new_generation(ty, old, &new) {
        bump_generation(&mut new);
    }
    let leaving = !text(&new, "/metadata/deletionTimestamp").is_empty();
    let held = !list(&new, "/metadata/finalizers").is_empty() || ty.rules == Rules::Namespace;
    Ok(if leaving && !held { Next::Remove(new) } else { Next::Put(new) })
}

/// What a deletion makes of an object: it goes at once, unless finalizers hold it. A namespace goes when
/// it is empty. Pods are marked first, as those are that get time to end: see [`Write::delete`].
///
/// [`Write::delete`]: crate::write::Write
pub(crate) fn prepare_delete(ty: &ResourceType, old: &Value) -> Next {
    let held = !list(old, "/metadata/finalizers").is_empty() || ty.rules == Rules::Namespace;
    let marked = !text(old, "/metadata/deletionTimestamp").is_empty();
    let mut object = old.clone();
    if !held && (ty.rules != Rules::Pod || marked) {
        return Next::Remove(object);
    }
    if !marked {
        let meta = metadata(&mut object);
        meta.insert("deletionTimestamp".to_owned(), json!(now()));
        if ty.rules == Rules::Namespace {
            section(&mut object, "status").insert("phase".to_owned(), json!("Terminating"));
        } else {
            meta.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        }
        if ty.has_generation() {
            bump_generation(&mut object);
        }
    }
    Next::Put(object)
}

/// Now, as Kubernetes writes times: whole seconds.
pub(crate) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// The kind, and the form of everything that Kubernetes itself defines.
pub(crate) fn check_form(ty: &ResourceType, object: &mut Value) -> Result<(), Refusal> {
    drop_nulls(object);
    // Like the real server's structs, which leave these out when they are empty.
    let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        if metadata(object).get(field).is_some_and(is_empty) {
            metadata(object).remove(field);
        }
    }
    let expected = [("apiVersion", ty.api_version()), ("kind", ty.kind.clone())];
    for (key, expected) in expected {
        let given = object.get(key).and_then(Value::as_str).unwrap_or_default();
        if given.is_empty() && ty.custom.is_some() {
            let why = format!(
                "the object provided is unrecognized (must be of type {}): its {key} is missing",
                ty.kind
            );
            return Err(Refusal::bad_request(why));
        }
        if !given.is_empty() && given != expected {
            let why = format!(
                "the {key} in the data ({given}) does not match the expected {key} ({expected})"
            );
            return Err(Refusal::bad_request(why));
        }
        as_map(object).insert(key.to_owned(), json!(expected));
    }
    if ty.custom.is_none() {
        unify_quantities(object);
    }
    let checked = ty.decodes(object).and_then(|()| check_metadata(object));
    checked.map_err(|err| {
        let version = ty.api_version();
        let kind = &ty.kind;
        Refusal::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {err}"
        ))
    })
}

/// Whether labels, annotations and the like have the form that every object shares.
pub(crate) fn check_metadata(object: &Value) -> Result<(), serde_json::Error> {
    match object.get("metadata") {
        Some(meta) => ObjectMeta::deserialize(meta).map(drop),
        None => Ok(()),
    }
}

fn check_namespace(target: &Target, object: &mut Value) -> Result<(), Refusal> {
    let meta = metadata(object);
    let Some(namespace) = &target.namespace else {
        meta.remove("namespace");
        return Ok(());
    };
    let given = meta.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the \
                   request";
        return Err(Refusal::bad_request(why));
    }
    meta.insert("namespace".to_owned(), json!(namespace));
    Ok(())
}

/// Whether `new` is about the object that is there, and about its latest state if it says so.
pub(crate) fn check_identity(
    ty: &ResourceType,
    key: &Key,
    old: &Value,
    new: &Value,
) -> Result<(), Refusal> {
    let name = &key.name;
    let given = |pointer: &str| Some(text(new, pointer)).filter(|text| !text.is_empty());
    if let Some(given) = given("/metadata/name").filter(|given| given != name) {
        let why =
            format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(Refusal::bad_request(why));
    }
    let uid = text(old, "/metadata/uid");
    if let Some(given) = given("/metadata/uid").filter(|given| *given != uid) {
        return Err(Refusal::precondition(ty, key, "UID", given, uid));
    }
    let version = text(old, "/metadata/resourceVersion");
    if given("/metadata/resourceVersion").is_some_and(|given| given != version) {
        return Err(Refusal::modified_meanwhile(ty, name));
    }
    Ok(())
}

/// An object that is being deleted can only lose finalizers.
fn check_finalizers(
    ty: &ResourceType,
    name: &str,
    old: &Value,
    new: &Value,
) -> Result<(), Refusal> {
    let had = list(old, "/metadata/finalizers");
    let added =
        list(new, "/metadata/finalizers").iter().filter(|finalizer| !had.contains(finalizer));
    let added: Vec<String> = added.map(ToString::to_string).collect();
    if added.is_empty() || text(old, "/metadata/deletionTimestamp").is_empty() {
        return Ok(());
    }
    let why = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new \
         finalizers []string{{{}}}",
        added.join(", ")
    );
    // The real server looks at the metadata of every object, and at that of most types once more.
    let looks_once = matches!(ty.rules, Rules::Event | Rules::NewEvent | Rules::Budget);
    let wrong = vec![("metadata.finalizers", why); if looks_once { 1 } else { 2 }];
    Err(Refusal::invalid_fields(ty, name, &wrong))
}

/// A custom resource's status request changes nothing else; one of the built-in types leaves the
/// spec alone but may touch labels and annotations.
fn keep_all_but_status(ty: &ResourceType, old: &Value, new: &mut Value) {
    if ty.rules == Rules::Custom {
        let status = new.get("status").cloned();
        new.clone_from(old);
        as_map(new).remove("status");
        if let Some(status) = status {
            as_map(new).insert("status".to_owned(), status);
        }
    } else {
        take_over(new, old, "spec");
    }
}

fn shape(ty: &ResourceType, object: &mut Value) {
    if let Some(custom) = &ty.custom {
        custom.shape(object);
    }
}

/// Everything but metadata and status is what an object's owner wants.
fn wants_new_generation(ty: &ResourceType, old: &Value, new: &Value) -> bool {
    let wanted = |object: &Value| {
        let mut map = object.as_object().cloned().unwrap_or_default();
        map.remove("metadata");
        if ty.has_status {
            map.remove("status");
        }
        map
    };
    wanted(old) != wanted(new)
}

fn bump_generation(object: &mut Value) {
    let meta = metadata(object);
    let generation = meta.get("generation").and_then(Value::as_i64).unwrap_or_default();
    meta.insert("generation".to_owned(), json!(generation + 1));
}
