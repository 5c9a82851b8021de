//! Reading requests and writing replies.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use crate::identity::{IDEMPOTENCY_HEADER, IdempotencyKey, OWNER_HEADER, Owner};
use crate::refusal::{Refusal, RefusalReason};

/// A refusal on its way out.
#[derive(Debug)]
pub(super) struct Refused(pub Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let reason = self.0.reason;
        let mut response = (reason.status(), Json(self.0)).into_response();
        // For the count of refusals.
        response.extensions_mut().insert(reason);
        response
    }
}

pub(super) fn malformed(message: impl Into<String>) -> Refused {
    Refused(Refusal::new(RefusalReason::Malformed, message))
}

/// A body in JSON. Unlike axum's, it refuses in the words of the contract.
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| malformed(rejection.body_text()))?;
        // No body is the same as an empty one: some calls need nothing said.
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Self).map_err(|error| malformed(error.to_string()))
    }
}

/// The header `Idempotency-Key`.
pub(super) struct Key(pub IdempotencyKey);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let text = text(&parts.headers, IDEMPOTENCY_HEADER)?
            .ok_or_else(|| malformed("the header Idempotency-Key is missing"))?;
        text.parse().map(Self).map_err(|error| malformed(format!("{error}")))
    }
}

/// The header `Corridor-Owner`, if it is there.
pub(super) struct Caller(pub Option<Owner>);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let Some(text) = text(&parts.headers, OWNER_HEADER)? else { return Ok(Self(None)) };
        text.parse().map(|owner| Self(Some(owner))).map_err(|error| malformed(format!("{error}")))
    }
}

impl Caller {
    /// For calls that must say who is calling.
    pub(super) fn required(self) -> Result<Owner, Refused> {
        self.0.ok_or_else(|| malformed("the header Corridor-Owner is missing"))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refused> {
    let value = headers.get(name).map(|value| value.to_str()).transpose();
    value.map_err(|_| malformed(format!("the header {name} is not plain text")))
}
