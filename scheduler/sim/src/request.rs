//! What a request asks for: its path, its query, and the form of answer it wants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Query;
use http::{HeaderMap, Uri, header};

use crate::catalog::{Catalog, ResourceType, Rules};
use crate::refusal::Refusal;

/// What a path below `/api/v1` or `/apis/<group>/<version>` names.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub ty: &'a Arc<ResourceType>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: String,
}

impl Target<'_> {
    /// The namespace part of the object's key.
    pub fn namespace_key(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// Reads the segments of a path; `None` if they name nothing that is served.
pub(crate) fn target<'a>(catalog: &'a Catalog, segments: &[String]) -> Option<Target<'a>> {
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        // `status` and `finalize` belong to the namespace itself.
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (Some(*namespace), inner),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, ""),
        [plural, name] => (plural, Some(*name), ""),
        [plural, name, subresource] => (plural, Some(*name), *subresource),
        _ => return None,
    };
    // The legacy way to bind is a resource that is only ever created.
    if group.is_empty() && version == "v1" && *plural == "bindings" && name.is_none() {
        let ty = catalog.with_rules(Rules::Pod);
        let namespace = Some(namespace?.to_owned());
        return Some(Target { ty, namespace, name: None, subresource: "binding".to_owned() });
    }
    let ty = catalog.find(group, version, plural)?;
    let fits = match (ty.namespaced, namespace.is_some()) {
        (true, true) | (false, false) => true,
        // Only lists and watches go over all namespaces.
        (true, false) => name.is_none(),
        (false, true) => false,
    };
    fits.then(|| Target {
        ty,
        namespace: namespace.map(ToOwned::to_owned),
        name: name.map(ToOwned::to_owned),
        subresource: subresource.to_owned(),
    })
}

/// The decoded segments of a path.
pub(crate) fn segments(path: &str) -> Result<Vec<String>, Refusal> {
    path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect()
}

fn decode(segment: &str) -> Result<String, Refusal> {
    let bad = || Refusal::bad_request(format!("the path segment \"{segment}\" is badly encoded"));
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (code, tail) = rest.split_at_checked(2).ok_or_else(bad)?;
            let code = std::str::from_utf8(code).map_err(|_| bad())?;
            bytes.push(u8::from_str_radix(code, 16).map_err(|_| bad())?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

/// The query of a request, as far as the model obeys it.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    /// `resourceVersionMatch`: `Exact`, `NotOlderThan` or nothing.
    pub version_match: String,
    /// Never zero: that is no limit.
    pub limit: Option<usize>,
    pub watch: bool,
    pub bookmarks: bool,
    pub initial_events: Option<bool>,
    pub timeout: Option<Duration>,
    pub dry_run: bool,
    pub field_manager: String,
    pub include_object: String,
    pub continue_token: String,
}

impl Options {
    pub fn parse(uri: &Uri) -> Result<Self, Refusal> {
        let query: Query<Vec<(String, String)>> =
            Query::try_from_uri(uri).map_err(|err| Refusal::bad_request(err.body_text()))?;
        let mut options = Self::default();
        let mut known = BTreeSet::new();
        for (key, value) in query.0 {
            // Of what is said twice, the first counts.
            if !known.insert(key.clone()) {
                continue;
            }
            match key.as_str() {
                "labelSelector" => options.label_selector = value,
                "fieldSelector" => options.field_selector = value,
                "resourceVersion" => options.resource_version = value,
                "resourceVersionMatch" => options.version_match = value,
                "limit" => {
                    let limit: i64 =
                        value.parse().map_err(|_| not_a("whole number", &key, &value))?;
                    options.limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
                }
                "watch" => options.watch = flag(&key, &value)?,
                "allowWatchBookmarks" => options.bookmarks = flag(&key, &value)?,
                "sendInitialEvents" => options.initial_events = Some(flag(&key, &value)?),
                "timeoutSeconds" => {
                    let seconds = value.parse().map_err(|_| not_a("whole number", &key, &value))?;
                    options.timeout = Some(Duration::from_secs(seconds));
                }
                "dryRun" => options.dry_run = dry_run(&value)?,
                "fieldManager" => options.field_manager = value,
                "includeObject" => options.include_object = value,
                "continue" => options.continue_token = value,
                _ => {}
            }
        }
        Ok(options)
    }

    /// `None` if the client does not care how new the answer is.
    pub fn revision(&self) -> Result<Option<u64>, Refusal> {
        match self.resource_version.as_str() {
            "" | "0" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let why = not_a_version(text);
                Refusal::bad_request(format!("invalid resource version: {why}"))
            }),
        }
    }

    /// The same for a watch, where the real server takes a wrong one for its own mistake.
    pub fn watched_revision(&self) -> Result<Option<u64>, Refusal> {
        self.revision().map_err(|_| Refusal::internal(not_a_version(&self.resource_version)))
    }

    /// Which combinations of options a list or a watch may have.
    pub fn check_for_reading(&self) -> Result<(), Refusal> {
        let mut wrong = Vec::new();
        let matching = self.version_match.as_str();
        let mut forbid = |field: &'static str, why: &str| {
            wrong.push((field, format!("Forbidden: {why}")));
        };
        if self.watch {
            if self.initial_events.is_some() && matching != "NotOlderThan" {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                forbid("resourceVersionMatch", why);
            }
            if !matching.is_empty() && self.initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents \
                           is provided";
                forbid("resourceVersionMatch", why);
            }
        } else {
            if !matching.is_empty() && self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                forbid("resourceVersionMatch", why);
            }
            if !matching.is_empty() && !self.continue_token.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                forbid("resourceVersionMatch", why);
            }
            if matching == "Exact" && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                forbid("resourceVersionMatch", why);
            }
            if self.initial_events.is_some() {
                forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
            }
        }
        let known: &[&str] =
            if self.watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
        if !matching.is_empty() && !known.contains(&matching) {
            let known: Vec<String> = known.iter().map(|it| format!("\"{it}\"")).collect();
            let why = format!(
                "Unsupported value: \"{matching}\": supported values: {}",
                known.join(", ")
            );
            wrong.push(("resourceVersionMatch", why));
        }
        if wrong.is_empty() { Ok(()) } else { Err(Refusal::invalid_options("ListOptions", &wrong)) }
    }
}

fn not_a_version(text: &str) -> String {
    let why = format!("strconv.ParseUint: parsing \"{text}\": invalid syntax");
    format!("resourceVersion: Invalid value: \"{text}\": {why}")
}

pub(crate) fn dry_run(value: &str) -> Result<bool, Refusal> {
    match value {
        "All" => Ok(true),
        other => Err(Refusal::invalid_option(format!(
            "dryRun: Unsupported value: \"{other}\": supported values: \"All\""
        ))),
    }
}

fn flag(key: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "" | "1" | "t" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err(not_a("truth value", key, value)),
    }
}

fn not_a(what: &str, key: &str, value: &str) -> Refusal {
    Refusal::bad_request(format!("{key}: Invalid value: \"{value}\": not a {what}"))
}

/// The form of object a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Table,
    Metadata,
}

impl Form {
    /// The first form in `Accept` that the model has. Protobuf is never offered, so clients that
    /// prefer it fall back to JSON.
    pub fn from_accept(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        for choice in accept.unwrap_or_default().split(',') {
            let mut parts = choice.split(';').map(str::trim);
            if !matches!(parts.next(), Some("application/json" | "*/*" | "application/*")) {
                continue;
            }
            let shape = parts.find_map(|part| part.strip_prefix("as="));
            match shape {
                None => return Self::Object,
                Some("Table") => return Self::Table,
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    return Self::Metadata;
                }
                Some(_) => {}
            }
        }
        Self::Object
    }
}

/// The media type without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}
