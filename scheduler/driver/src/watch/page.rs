//! One question, and a page of a list as the answer to it.

use std::error::Error;
use std::time::Duration;

use http::header::ACCEPT;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use super::binary::read_error;
use super::cursor::Ask;
use super::frames::{JsonPage, Notice, read};
use super::told::{Answer, Told, accepted, is_protobuf};
use crate::wire::Wire;

/// An answer in which nothing comes for this long is given up.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(28);

/// So much of a page is read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unanswered {
    /// None if not even that came.
    pub(super) status: Option<StatusCode>,
    message: String,
}

impl Unanswered {
    fn because(why: impl Into<String>) -> Self {
        Self { status: None, message: why.into() }
    }
}

fn failed(error: impl Error) -> Unanswered {
    Unanswered::because(error.to_string())
}

/// Asks for objects, in protobuf where that is spoken.
pub(super) async fn asked<K: Wire>(
    client: &Client,
    path: &str,
) -> Result<Response<Body>, Unanswered> {
    let request = Request::get(path).header(ACCEPT, accepted::<K>()).body(Body::empty());
    let request = request.map_err(failed)?;
    let reply = match timeout(SILENCE_MAX, client.send(request)).await {
        Ok(reply) => reply.map_err(failed)?,
        Err(_) => return Err(Unanswered::because(format!("no answer within {SILENCE_MAX:?}"))),
    };
    let status = reply.status();
    if status.is_success() {
        return Ok(reply);
    }
    let in_protobuf = is_protobuf(reply.headers());
    let notice: Notice = match timeout(SILENCE_MAX, reply.into_body().collect()).await {
        Ok(Ok(body)) if in_protobuf => read_error(&body.to_bytes()),
        Ok(Ok(body)) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        Ok(Err(_)) | Err(_) => Notice::default(),
    };
    Err(Unanswered { status: Some(status), message: format!("{status}: {}", notice.message) })
}

/// A page of a list: what can be read of it.
#[derive(Debug)]
pub(crate) struct Page<K> {
    pub objects: Vec<K>,
    /// For the next one.
    pub token: Option<String>,
}

impl<K: Wire> Page<K> {
    pub async fn ask(client: &Client, path: &str) -> Result<Self, Unanswered> {
        let reply = asked::<K>(client, path).await?;
        let answer = Answer::to(&Ask::Page { token: None }, reply.headers());
        match timeout(SILENCE_MAX, reply.into_body().collect()).await {
            Ok(body) => Self::read(&body.map_err(failed)?.to_bytes(), answer),
            Err(_) => Err(Unanswered::because(format!("not there within {SILENCE_MAX:?}"))),
        }
    }

    /// No `answer`: it is written in JSON.
    pub(super) fn read(body: &[u8], answer: Option<Answer<K>>) -> Result<Self, Unanswered> {
        let Some(mut answer) = answer else {
            let page = JsonPage::read(body).map_err(failed)?;
            let objects = page.items().iter().filter_map(|raw| read(raw).ok()).collect();
            return Ok(Self { objects, token: page.token().map(str::to_owned) });
        };
        let mut objects = Vec::new();
        // What was read of a page makes room for the rest: one may be longer than a piece of an answer may be.
        for chunk in body.chunks(CHUNK_BYTES) {
            answer.feed(chunk).map_err(failed)?;
            while let Some(told) = answer.next() {
                match told.map_err(Unanswered::because)? {
                    Told::Seen(object) => objects.extend(object.ok()),
                    Told::ListEnds { token, .. } => return Ok(Self { objects, token }),
                    Told::Gone(_) | Told::Bookmark(_) | Told::Error(_) => {
                        return Err(Unanswered::because("no list"));
                    }
                }
            }
        }
        Err(Unanswered::because("the list has no end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WirePod;

    #[test]
    fn in_json_what_can_be_read_and_where_it_goes_on() {
        let body = br#"{"metadata":{"continue":"t"},"items":[
            {"metadata":{"name":"p"},"spec":{"containers":[]}}, {"metadata":{"name":7}}]}"#;
        let page = Page::<WirePod>::read(body, None).unwrap();
        assert_eq!((page.objects.len(), page.token.as_deref()), (1, Some("t")));
        assert!(Page::<WirePod>::read(b"{", None).is_err());
    }
}
