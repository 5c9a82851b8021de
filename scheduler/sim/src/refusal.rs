//! Every answer that is not a success, as the `Status` object a Kubernetes client expects.
//!
//! Codes, reasons and wording follow kube-apiserver 1.36 where it has an answer of its own, because
//! clients and people match on them.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::catalog::ResourceType;
use crate::stored::Key;

/// Why a request was not carried out.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// With an expired list: how to go on nevertheless.
    continue_token: String,
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: String::new() }
    }

    fn detailed(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub fn continued_by(mut self, token: String) -> Self {
        self.continue_token = token;
        self
    }

    pub fn in_context(mut self, context: &str) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    pub fn not_found(ty: &ResourceType, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", ty.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).detailed(ty.details(name))
    }

    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).detailed(json!({}))
    }

    pub fn already_exists(ty: &ResourceType, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", ty.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).detailed(ty.details(name))
    }

    /// `what` is the resource as the real server names it, e.g. `pods` or `pods/binding`.
    pub fn conflict(what: &str, name: &str, why: impl AsRef<str>) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {what} \"{name}\": {}", why.as_ref());
        let details = match what.split_once('.') {
            Some((kind, group)) => json!({ "name": name, "kind": kind, "group": group }),
            None => json!({ "name": name, "kind": what }),
        };
        Self::new(StatusCode::CONFLICT, "Conflict", message).detailed(details)
    }

    pub fn modified_meanwhile(ty: &ResourceType, name: &str) -> Self {
        let why = "the object has been modified; \
                   please apply your changes to the latest version and try again";
        Self::conflict(&ty.qualified(), name, why)
    }

    /// A storage precondition that does not hold, for `PUT` and for Bindings.
    pub fn precondition(ty: &ResourceType, key: &Key, what: &str, asked: &str, is: &str) -> Self {
        let mut place = ty.storage_place();
        for part in [&key.namespace, &key.name] {
            if !part.is_empty() {
                place = format!("{place}/{part}");
            }
        }
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: {what} in precondition: {asked}, {what} in \
             object meta: {is}"
        );
        Self::conflict(&ty.qualified(), &key.name, why)
    }

    /// One field is wrong: `why` starts with the kind of mistake, as in `Required value`.
    pub fn invalid(ty: &ResourceType, name: &str, field: &str, why: &str) -> Self {
        Self::invalid_fields(ty, name, &[(field, why.to_owned())])
    }

    /// Several fields are wrong.
    pub fn invalid_fields(ty: &ResourceType, name: &str, wrong: &[(&str, String)]) -> Self {
        let kind = ty.qualified_kind();
        let message = format!("{kind} \"{name}\" is invalid: {}", complaints(wrong));
        let mut details = json!({ "kind": ty.kind, "causes": causes(wrong) });
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !ty.group.is_empty() {
            details["group"] = json!(ty.group);
        }
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).detailed(details)
    }

    /// A `PUT` that does not say which version it replaces. The real server names the type by its plural
    /// here.
    pub fn version_required(ty: &ResourceType, name: &str) -> Self {
        let why = "Invalid value: 0: must be specified for an update".to_owned();
        let wrong = [("metadata.resourceVersion", why)];
        let message = format!("{} \"{name}\" is invalid: {}", ty.qualified(), complaints(&wrong));
        let mut details = ty.details(name);
        details["causes"] = causes(&wrong);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).detailed(details)
    }

    /// Options of a request that do not go together. `kind` is what the real server calls them.
    pub fn invalid_options(kind: &str, wrong: &[(&str, String)]) -> Self {
        let group = "meta.k8s.io";
        let message = format!("{kind}.{group} \"\" is invalid: {}", complaints(wrong));
        let details = json!({ "group": group, "kind": kind, "causes": causes(wrong) });
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).detailed(details)
    }

    /// A JSON patch that is well formed, but not for this object.
    pub fn patch_does_not_apply() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).detailed(json!({}))
    }

    pub fn too_many_operations(operations_max: usize, operations: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is \
             {operations_max}, got {operations}"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// A fault that a test asked for.
    pub fn on_purpose(code: u16) -> Self {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let reason = match code.as_u16() {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            409 => "Conflict",
            410 => "Expired",
            413 => "RequestEntityTooLarge",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        let refusal = Self::new(code, reason, "a fault on purpose");
        match code.as_u16() {
            429 | 503 | 504 => refusal.detailed(json!({ "retryAfterSeconds": 1 })),
            _ => refusal,
        }
    }

    /// A wrong query parameter or option of a request.
    pub fn invalid_option(why: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", why)
    }

    pub fn forbidden(ty: &ResourceType, name: &str, why: impl AsRef<str>) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {}", ty.qualified(), why.as_ref());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).detailed(ty.details(name))
    }

    pub fn namespace_terminating(ty: &ResourceType, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut refusal = Self::forbidden(ty, name, why);
        if let Some(details) = &mut refusal.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        refusal
    }

    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", why)
    }

    pub fn too_large(bytes_max: usize) -> Self {
        let message = format!("the request body is larger than {bytes_max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub fn method_not_allowed(why: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", why).detailed(json!({}))
    }

    pub fn unsupported_media_type(why: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", why)
            .detailed(json!({}))
    }

    /// The real server has this, the model does not.
    pub fn not_modelled(what: &str) -> Self {
        let message = format!("{what}: not part of this in-memory model of the Kubernetes API");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message).detailed(json!({}))
    }

    pub fn too_many_requests(why: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", why)
            .detailed(json!({ "retryAfterSeconds": 1 }))
    }

    /// The watched past is no longer remembered: the client has to list again.
    pub fn expired(why: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", why)
    }

    pub fn resource_version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).detailed(json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        }))
    }

    /// The few wrong requests for which the real server, too, answers 500.
    pub fn internal(why: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", why)
    }

    /// The body of the answer; also the object of an `ERROR` watch event.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if !self.continue_token.is_empty() {
            status["metadata"]["continue"] = json!(self.continue_token);
        }
        status
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json_response(self.code, &self.status());
        let pause = self.details.as_ref().and_then(|details| details.get("retryAfterSeconds"));
        if let Some(seconds) = pause.and_then(Value::as_u64) {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Several complaints as the real server puts them into one sentence: each once, in brackets.
fn complaints(wrong: &[(&str, String)]) -> String {
    let mut all: Vec<String> = Vec::new();
    for (field, why) in wrong {
        let complaint = format!("{field}: {why}");
        if !all.contains(&complaint) {
            all.push(complaint);
        }
    }
    match all.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn causes(wrong: &[(&str, String)]) -> Value {
    let cause = |(field, why): &(&str, String)| {
        let reason = match why.split(':').next().unwrap_or_default() {
            "Required value" => "FieldValueRequired",
            "Forbidden" => "FieldValueForbidden",
            "Unsupported value" => "FieldValueNotSupported",
            _ => "FieldValueInvalid",
        };
        json!({ "reason": reason, "message": why, "field": field })
    };
    wrong.iter().map(cause).collect()
}

pub(crate) fn json_response(code: StatusCode, body: &Value) -> Response {
    raw_json_response(code, Body::from(body.to_string()))
}

pub(crate) fn raw_json_response(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
