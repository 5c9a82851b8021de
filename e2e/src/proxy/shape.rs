//! What becomes of a watch on its way through the proxy, event by event.

use futures::stream::{self, StreamExt as _};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;

use super::{BoxError, ReplyBody};

/// How the events of a watch are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One to a line.
    Json,
    /// Each with its length before it.
    Protobuf,
}

/// What becomes of an event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// These are passed back instead.
    Events(Vec<Bytes>),
    /// The watch ends here.
    Cut,
    /// Nothing more is heard, though the connection stays.
    Silence,
}

/// Judges a watch event by event.
pub type Shaper = Box<dyn FnMut(&[u8], Form) -> Fate + Send>;

pub(super) fn is_protobuf(media_type: &HeaderValue) -> bool {
    media_type.as_bytes().starts_with(b"application/vnd.kubernetes.protobuf")
}

impl Form {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_protobuf = headers.get(CONTENT_TYPE).is_some_and(is_protobuf);
        if is_protobuf { Self::Protobuf } else { Self::Json }
    }

    /// The first event of these bytes, once it is there as a whole, without its end or length.
    pub fn take(self, bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Self::Json => {
                let end = bytes.iter().position(|byte| *byte == b'\n')?;
                let mut event: Vec<u8> = bytes.drain(..=end).collect();
                event.pop();
                Some(event)
            }
            Self::Protobuf => {
                let (length, behind) = bytes.split_first_chunk()?;
                let length = u32::from_be_bytes(*length) as usize;
                let event = behind.get(..length)?.to_vec();
                bytes.drain(..size_of::<u32>() + length);
                Some(event)
            }
        }
    }

    fn put(self, event: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Json => {
                out.extend_from_slice(event);
                out.push(b'\n');
            }
            Self::Protobuf => {
                let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(event);
            }
        }
    }
}

/// A watch as the shaper leaves it.
pub(super) fn shaped(body: Body, form: Form, shaper: Shaper) -> ReplyBody {
    let state = (body.into_data_stream(), shaper, Vec::new(), false);
    let frames =
        stream::unfold(state, move |(mut chunks, mut shaper, mut rest, over)| async move {
            if over {
                return None;
            }
            let chunk = chunks.next().await?;
            let chunk: Bytes = match chunk {
                Ok(chunk) => chunk,
                Err(problem) => return Some((Err(problem.into()), (chunks, shaper, rest, true))),
            };
            rest.extend_from_slice(&chunk);
            let (mut out, mut over) = (Vec::new(), false);
            while let Some(event) = form.take(&mut rest) {
                match shaper(&event, form) {
                    Fate::Events(events) => events.iter().for_each(|it| form.put(it, &mut out)),
                    Fate::Cut => {
                        over = true;
                        break;
                    }
                    Fate::Silence => std::future::pending().await,
                }
            }
            let frame: Result<_, BoxError> = Ok(Frame::data(Bytes::from(out)));
            Some((frame, (chunks, shaper, rest, over)))
        });
    StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_in_either_form() {
        for form in [Form::Json, Form::Protobuf] {
            let (mut out, mut rest, mut seen) = (Vec::new(), Vec::new(), Vec::new());
            form.put(b"one", &mut out);
            form.put(b"", &mut out);
            form.put(b"three", &mut out);
            for byte in out {
                rest.push(byte);
                seen.extend(form.take(&mut rest));
            }
            assert_eq!(seen, [&b"one"[..], b"", b"three"], "{form:?}");
            assert!(rest.is_empty());
        }
    }
}
