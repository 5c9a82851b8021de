//! Names and UIDs of new objects.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::catalog::{ResourceType, Rules};
use crate::json::text;
use crate::refusal::Refusal;

/// As in the real server: room for the random part of a generated name.
const GENERATED_PREFIX_MAX: usize = 58;
const GENERATED_SUFFIX: usize = 5;
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// The name that a new object has or gets; empty if it asks for none.
pub(crate) fn new_name(object: &Value) -> String {
    let (name, prefix) = (text(object, "/metadata/name"), text(object, "/metadata/generateName"));
    if !name.is_empty() || prefix.is_empty() {
        return name.to_owned();
    }
    let cut = prefix.chars().take(GENERATED_PREFIX_MAX).collect::<String>();
    cut + &random_suffix()
}

/// In the words of the real server, which does not look at the names of some types.
pub(crate) fn check_name(ty: &ResourceType, name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(unnamed(ty, "Required value: name or generateName is required"));
    }
    let (length_max, dots, rule) = match ty.rules {
        Rules::Budget | Rules::Event => return Ok(()),
        Rules::Namespace | Rules::Service => (LABEL_MAX, false, LABEL_RULE),
        _ => (NAME_MAX, true, SUBDOMAIN_RULE),
    };
    if !is_dns_name(name, dots) {
        let why = format!("Invalid value: \"{name}\": {rule}");
        return Err(Refusal::invalid(ty, name, "metadata.name", &why));
    }
    if name.len() > length_max {
        let why =
            format!("Invalid value: \"{name}\": must be no more than {length_max} characters");
        return Err(Refusal::invalid(ty, name, "metadata.name", &why));
    }
    Ok(())
}

/// The rules of a custom resource are looked at only after the rest, and the real server says so.
fn unnamed(ty: &ResourceType, why: &str) -> Refusal {
    let mut wrong = vec![("metadata.name", why.to_owned())];
    if ty.custom.as_ref().is_some_and(|custom| custom.has_rules) {
        let why = "Invalid value: null: some validation rules were not checked because the object was \
                   invalid; correct the existing errors to complete validation";
        wrong.push(("<nil>", why.to_owned()));
    }
    Refusal::invalid_fields(ty, "", &wrong)
}

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
    used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

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

pub(crate) fn new_uid() -> String {
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
