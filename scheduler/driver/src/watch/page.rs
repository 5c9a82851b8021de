//! One request for a list, or for a page of one.

use std::error::Error;
use std::time::Duration;

use futures::{Stream, StreamExt};
use http::header::ACCEPT;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use super::binary::read_error;
use super::cursor::Ask;
use super::frames::{JsonPage, StatusOrBookmark, read};
use super::response::{Frame, ResponseDecoder, accepted, is_protobuf};
use crate::wire::Wire;

/// An answer in which nothing comes for this long is given up.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(28);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unanswered {
    /// None if not even that came.
    pub(super) status: Option<StatusCode>,
    message: String,
}

impl Unanswered {
    /// The kind is not served.
    pub fn is_absent(&self) -> bool {
        self.status == Some(StatusCode::NOT_FOUND)
    }

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
    let notice: StatusOrBookmark = match timeout(SILENCE_MAX, reply.into_body().collect()).await {
        Ok(Ok(body)) if in_protobuf => read_error(&body.to_bytes()),
        Ok(Ok(body)) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        Ok(Err(_)) | Err(_) => StatusOrBookmark::default(),
    };
    Err(Unanswered { status: Some(status), message: format!("{status}: {}", notice.message) })
}

/// Objects that are handed over at a time.
const BATCH_OBJECTS: usize = 500;

/// A list, or a page of one, that is read while it comes.
pub(crate) struct Listing<K, S = BodyDataStream<Body>> {
    chunks: S,
    reading: ListReading<K>,
    end: Option<End>,
}

impl<K: Wire> Listing<K> {
    pub async fn ask(client: &Client, path: &str) -> Result<Self, Unanswered> {
        let reply = asked::<K>(client, path).await?;
        let decoder = ResponseDecoder::to(&Ask::Page { token: None }, reply.headers());
        let chunks = reply.into_body().into_data_stream();
        Ok(Self { chunks, reading: ListReading::new(decoder), end: None })
    }
}

impl<K, S, B, E> Listing<K, S>
where
    K: Wire,
    S: Stream<Item = Result<B, E>> + Unpin,
    B: AsRef<[u8]>,
    E: Error,
{
    /// Some more of its objects, those that can be read. None: that was all.
    pub async fn next(&mut self) -> Result<Option<Vec<K>>, Unanswered> {
        while self.end.is_none() && self.reading.objects.len() < BATCH_OBJECTS {
            // Silence is bounded, and not the whole: how long that takes depends on how many there are.
            let chunk = match timeout(SILENCE_MAX, self.chunks.next()).await {
                Ok(chunk) => chunk.transpose().map_err(failed)?,
                Err(_) => return Err(Unanswered::because(format!("silent for {SILENCE_MAX:?}"))),
            };
            self.end = match chunk {
                Some(chunk) => self.reading.feed(chunk.as_ref())?,
                None => Some(self.reading.end()?),
            };
        }
        let objects = std::mem::take(&mut self.reading.objects);
        Ok((!objects.is_empty()).then_some(objects))
    }

    /// For the next page, if there is one.
    pub fn token(self) -> Option<String> {
        self.end.and_then(|end| end.token)
    }
}

/// It has come as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Where it goes on.
    pub token: Option<String>,
}

/// What has come of a list so far.
pub(super) struct ListReading<K> {
    /// None: it is written in JSON, and read when it is there.
    decoder: Option<ResponseDecoder<K>>,
    body: Vec<u8>,
    /// Those that can be read.
    pub objects: Vec<K>,
}

impl<K: Wire> ListReading<K> {
    pub fn new(decoder: Option<ResponseDecoder<K>>) -> Self {
        Self { decoder, body: Vec::new(), objects: Vec::new() }
    }

    pub fn feed(&mut self, chunk: &[u8]) -> Result<Option<End>, Unanswered> {
        let Some(decoder) = &mut self.decoder else {
            self.body.extend_from_slice(chunk);
            return Ok(None);
        };
        decoder.feed(chunk).map_err(failed)?;
        while let Some(frame) = decoder.next() {
            match frame.map_err(Unanswered::because)? {
                Frame::Seen(object) => self.objects.extend(object.ok()),
                Frame::ListEnds { token, .. } => return Ok(Some(End { token })),
                Frame::Gone(_) | Frame::Bookmark(_) | Frame::Error(_) => {
                    return Err(Unanswered::because("no list"));
                }
            }
        }
        Ok(None)
    }

    /// Nothing more comes.
    pub fn end(&mut self) -> Result<End, Unanswered> {
        if self.decoder.is_some() {
            return Err(Unanswered::because("the list has no end"));
        }
        let page = JsonPage::read(&self.body).map_err(failed)?;
        self.objects.extend(page.items().iter().filter_map(|raw| read(raw).ok()));
        Ok(End { token: page.token().map(str::to_owned) })
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
        let mut reading = ListReading::<WirePod>::new(None);
        for chunk in body.chunks(11) {
            assert_eq!(reading.feed(chunk).unwrap(), None);
        }
        assert_eq!(reading.end().unwrap().token.as_deref(), Some("t"));
        assert_eq!(reading.objects.len(), 1);
        let mut cut = ListReading::<WirePod>::new(None);
        cut.feed(b"{").unwrap();
        assert!(cut.end().is_err());
    }

    /// One that comes in five parts, each after this long.
    async fn read_slowly(pause: Duration) -> Result<usize, Unanswered> {
        let body = br#"{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
        let parts = futures::stream::iter(body.chunks(body.len().div_ceil(5))).then(async |part| {
            tokio::time::sleep(pause).await;
            Ok::<_, std::io::Error>(part)
        });
        let reading = ListReading::<WirePod>::new(None);
        let mut listing = Listing { chunks: Box::pin(parts), reading, end: None };
        let mut pods = 0;
        while let Some(found) = listing.next().await? {
            pods += found.len();
        }
        Ok(pods)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_take_long_while_something_comes() {
        let a_little_less = SILENCE_MAX.saturating_sub(Duration::from_secs(1));
        assert_eq!(read_slowly(a_little_less).await.unwrap(), 2, "four times as long, in all");
        let silent = read_slowly(SILENCE_MAX * 2).await.unwrap_err().to_string();
        assert_eq!(silent, "silent for 28s");
    }
}
