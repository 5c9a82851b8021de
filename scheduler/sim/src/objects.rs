//! What the server does to every object that is created or changed: identity, times, generation,
//! and which parts a request may touch.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::{Catalog, ResourceType, Rules};
use crate::events;
use crate::json::{
    as_map, default, drop_nulls, list, metadata, quantities_to_text, section, take_over, text,
};
use crate::pod;
use crate::refusal::Refusal;
use crate::request::Target;
use crate::store::{Next, Store};
use crate::stored::Key;

/// As in the real server: room for the random part of a generated name.
const GENERATED_PREFIX_MAX: usize = 58;
const GENERATED_SUFFIX: usize = 5;
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

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
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::internal(why));
    }
    let name = new_name(ty, &object)?;
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
        Rules::Namespace => prepare_namespace(&name, &mut object),
        Rules::Node => prepare_node(&mut object),
        Rules::Secret => prepare_secret(&mut object),
        Rules::Controlled | Rules::Custom => {
            if ty.has_status {
                as_map(&mut object).remove("status");
            }
            shape(ty, &mut object);
        }
        Rules::Plain | Rules::Lease | Rules::Event | Rules::NewEvent | Rules::Definition => {}
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
    check_identity(ty, name, old, &new)?;
    check_finalizers(ty, name, old, &new)?;
    events::to_stored(ty, &mut new);
    if ty.rules == Rules::Secret {
        prepare_secret(&mut new);
    }
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
    if ty.rules == Rules::Pod {
        pod::check_update(ty, name, &target.subresource, old, &mut new)?;
    }
    if ty.has_generation() && wants_new_generation(ty, old, &new) {
        bump_generation(&mut new);
    }
    let leaving = !text(&new, "/metadata/deletionTimestamp").is_empty();
    let held = !list(&new, "/metadata/finalizers").is_empty() || ty.rules == Rules::Namespace;
    Ok(if leaving && !held { Next::Remove(new) } else { Next::Put(new) })
}

/// What a deletion makes of an object: it goes at once unless finalizers hold it. Pods get no grace
/// period, as there is no kubelet that would end it. A namespace goes when it is empty.
pub(crate) fn prepare_delete(ty: &ResourceType, old: &Value) -> Next {
    let mut object = old.clone();
    let held = !list(old, "/metadata/finalizers").is_empty() || ty.rules == Rules::Namespace;
    if text(old, "/metadata/deletionTimestamp").is_empty() {
        let meta = metadata(&mut object);
        meta.insert("deletionTimestamp".to_owned(), json!(now()));
        if ty.rules != Rules::Namespace {
            meta.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        }
        if ty.rules == Rules::Namespace {
            section(&mut object, "status").insert("phase".to_owned(), json!("Terminating"));
        }
        if ty.has_generation() {
            bump_generation(&mut object);
        }
    }
    if held { Next::Put(object) } else { Next::Remove(object) }
}

/// Now, as Kubernetes writes times: whole seconds.
pub(crate) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// The kind, and the form of everything that Kubernetes itself defines.
pub(crate) fn check_form(ty: &ResourceType, object: &mut Value) -> Result<(), Refusal> {
    drop_nulls(object);
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
        quantities_to_text(object);
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
    name: &str,
    old: &Value,
    new: &Value,
) -> Result<(), Refusal> {
    let given = |pointer: &str| Some(text(new, pointer)).filter(|text| !text.is_empty());
    if let Some(given) = given("/metadata/name").filter(|given| *given != name) {
        let why =
            format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(Refusal::bad_request(why));
    }
    let uid = text(old, "/metadata/uid");
    if let Some(given) = given("/metadata/uid").filter(|given| *given != uid) {
        return Err(Refusal::precondition(ty, name, "UID", given, uid));
    }
    let version = text(old, "/metadata/resourceVersion");
    if given("/metadata/resourceVersion").is_some_and(|given| given != version) {
        return Err(Refusal::modified_meanwhile(ty, name));
    }
    Ok(())
}

/// Who is being deleted can only lose finalizers.
fn check_finalizers(
    ty: &ResourceType,
    name: &str,
    old: &Value,
    new: &Value,
) -> Result<(), Refusal> {
    let had = list(old, "/metadata/finalizers");
    let added = list(new, "/metadata/finalizers").iter().find(|finalizer| !had.contains(finalizer));
    match added {
        Some(added) if !text(old, "/metadata/deletionTimestamp").is_empty() => {
            let why = format!(
                "Forbidden: no new finalizers can be added if the object is being deleted, found \
                 new finalizer {added}"
            );
            Err(Refusal::invalid(ty, name, "metadata.finalizers", &why))
        }
        _ => Ok(()),
    }
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

fn prepare_namespace(name: &str, object: &mut Value) {
    let labels = metadata(object).entry("labels").or_insert(Value::Null);
    as_map(labels).insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    section(object, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
    as_map(object).insert("status".to_owned(), json!({ "phase": "Active" }));
}

/// A Node may be created with its status. The taint for Nodes that are not ready yet is left out:
/// nothing here would take it off again.
fn prepare_node(object: &mut Value) {
    section(object, "spec");
    let status = section(object, "status");
    if let Some(capacity) = status.get("capacity").cloned() {
        status.entry("allocatable").or_insert(capacity);
    }
}

/// Plain text is for writing only: it is kept in base64, with the rest.
fn prepare_secret(object: &mut Value) {
    let texts = as_map(object).remove("stringData");
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
        section(object, "data").insert(key.clone(), json!(ByteString(bytes)));
    }
    default(as_map(object), "type", "Opaque");
}

fn new_name(ty: &ResourceType, object: &Value) -> Result<String, Refusal> {
    let name = text(object, "/metadata/name");
    let prefix = text(object, "/metadata/generateName");
    let name = match (name, prefix) {
        ("", "") => {
            let why = "Required value: name or generateName is required";
            return Err(Refusal::invalid(ty, "", "metadata.name", why));
        }
        ("", prefix) => {
            let cut = prefix.chars().take(GENERATED_PREFIX_MAX).collect::<String>();
            cut + &random_suffix()
        }
        (name, _) => name.to_owned(),
    };
    let (length_max, what, dots) = match ty.rules {
        Rules::Namespace => (LABEL_MAX, "label", false),
        _ => (NAME_MAX, "subdomain", true),
    };
    if name.len() > length_max || !is_dns_name(&name, dots) {
        let why = format!(
            "Invalid value: \"{name}\": a lowercase RFC 1123 {what} must consist of lower case \
             alphanumeric characters{}, and must start and end with an alphanumeric character, \
             in at most {length_max} characters",
            if dots { ", '-' or '.'" } else { " or '-'" }
        );
        return Err(Refusal::invalid(ty, &name, "metadata.name", &why));
    }
    Ok(name)
}

fn is_dns_name(name: &str, dots: bool) -> bool {
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if dots { name.split('.').all(label) } else { label(name) }
}

/// Letters and digits that form no words, as in the real server.
fn random_suffix() -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut bits = random();
    let mut suffix = String::new();
    for _ in 0..GENERATED_SUFFIX {
        let index = usize::try_from(bits % 27).unwrap_or_default();
        bits /= 27;
        suffix.push(char::from(ALPHABET[index]));
    }
    suffix
}

fn new_uid() -> String {
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

/// Good enough to tell objects apart; nothing here is a secret.
fn random() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(COUNT.fetch_add(1, Ordering::Relaxed))
}
